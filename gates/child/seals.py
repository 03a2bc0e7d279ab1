"""Reads the lines of a recorder that its seals show to be its own, in their order."""

import hashlib
import hmac
from pathlib import Path

MOST_BYTES = 64 * 1024 * 1024
HEAD = len("=") + 2 * hashlib.sha256().digest_size + len(" ")


def unsealed(path: Path, secret: str) -> tuple[list[str], int]:
    """Return the lines that were told with a secret, and how many are somebody else's; raise `OSError` without a file.

    A line that was taken out or changed leaves no seal behind it that fits: all after it are somebody else's.
    """
    with path.open("rb") as file:
        told = file.read(MOST_BYTES).split(b"\n")
    told.pop()  # nothing, or a line that its writer did not live to end
    lines: list[str] = []
    last, foreign = b"", 0
    for line in told:
        seal, text = line[:HEAD], line[HEAD:]
        fits = hmac.digest(secret.encode(), last + text, hashlib.sha256)
        if hmac.compare_digest(seal, b"=" + fits.hex().encode() + b" "):
            last = fits
            lines.append(text.decode("utf-8", "backslashreplace"))
        else:
            foreign += 1
    return lines, foreign
