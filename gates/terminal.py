"""Text of others on a terminal or a page: what would steer either is shown, not done."""

import unicodedata

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def visible(text: str) -> str:
    """Show control characters, and those that turn the direction of writing, as escapes."""
    return "".join(c if unicodedata.category(c) not in HIDDEN else f"\\u{ord(c):04x}" for c in text)
