"""Text of others on a terminal or a page: what would steer either is shown, not done."""

import unicodedata

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def printable(text: str) -> str:
    """Show what is no text at all (lone surrogates, such as bytes of a file name that are not UTF-8) as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def visible(text: str) -> str:
    """Show control characters, and those that turn the direction of writing, as escapes."""
    return "".join(c if unicodedata.category(c) not in HIDDEN else f"\\u{ord(c):04x}" for c in text)
