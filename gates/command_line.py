"""Commands as reports show them: to be copied into a shell."""

import re
import shlex
from collections.abc import Iterable

PLACEHOLDER = re.compile(r"\{\w+\}")


def shown(words: Iterable[str]) -> str:
    """Return a command with the words quoted that a shell would read otherwise; placeholders stay: `{out}`."""
    return " ".join(word if PLACEHOLDER.fullmatch(word) else shlex.quote(word) for word in words)
