"""Words of a report: text of others made harmless; commands, counts and sizes as people read them."""

import json
import re
import shlex
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import TypeVar

from gates.errors import UsageError

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def printable(text: str) -> str:
    """Show what is no text at all (lone surrogates, such as bytes of a file name that are not UTF-8) as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def place_in(error: UnicodeDecodeError) -> str:
    """Return the line and the column of the first byte that is no text."""
    before = error.object[: error.start].split(b"\n")
    return f"{len(before)}:{len(before[-1]) + 1}"


def visible(text: str) -> str:
    """Show control characters, and those that turn the direction of writing, as escapes."""
    shown = (c if unicodedata.category(c) not in HIDDEN else f"\\u{ord(c):04x}" for c in text)
    return text if text.isprintable() else "".join(shown)


def grouped(values: Iterable[T], key: Callable[[T], K]) -> defaultdict[K, list[T]]:
    """Return values in lists by their key, in the order in which each came first."""
    groups = defaultdict[K, list[T]](list)
    for value in values:
        groups[key(value)].append(value)
    return groups


PLACEHOLDER = re.compile(r"\{\w+\}")


def in_shell(words: Iterable[str]) -> str:
    """Return a command with the words quoted that a shell would read otherwise; placeholders stay: `{out}`."""
    return " ".join(word if PLACEHOLDER.fullmatch(word) else shlex.quote(word) for word in words)


def called(call: str, args: Iterable[object]) -> str:
    """Return a call with its arguments, such as `pkg.mod:make(8)`."""
    return f"{call}({', '.join(map(json.dumps, args))})"


def in_order(names: Iterable[str]) -> list[str]:
    """Return names as people count them: AC2 before AC11."""
    return sorted(names, key=lambda name: re.sub(r"\d+", lambda digits: digits[0].zfill(9), name))


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as `1 test` or `2 tests`."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def joined(names: Sequence[str]) -> str:
    """Return names as a sentence has them, such as `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def first_of(names: Sequence[object], most: int) -> str:
    """Return the first of some names, and how many more there are."""
    return ", ".join(map(str, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def meant(word: str, known: Iterable[str]) -> str:
    """Return the words `; did you mean 'x'?`, or nothing where nothing is near."""
    names = sorted(set(known))
    near = [name for name in names if name.casefold() == word.casefold()]
    near = near or get_close_matches(word, names, n=1, cutoff=0.6)
    same_letters = (name for name in names if SequenceMatcher(None, word, name).quick_ratio() >= 0.8)
    near = near or [name for name in names if word and name.startswith(word)] or [*same_letters]
    return f"; did you mean {near[0]!r}?" if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return what may have been meant, or the list of what is known where nothing is near."""
    names = sorted(set(known))
    return meant(word, names) or (f"; known: {', '.join(names)}" if names else "")


def one_of(name: str, known: Mapping[str, T], told: str) -> T:
    """Return what has a name; raise `UsageError` with what may have been meant where nothing has."""
    if name not in known:
        raise UsageError(f"{told} {name!r}{did_you_mean(name, known)}")
    return known[name]


UNITS = ("B", "KB", "MB", "GB", "TB")
STEP = 1024


def shown(value: float, unit: str) -> str:
    """Return a number with its unit, bytes in the largest one that keeps it above 1."""
    if unit != "bytes":
        return f"{value:.3g} {unit}"
    size, power = abs(value), 0
    while size >= STEP and power < len(UNITS) - 1:
        size, power = size / STEP, power + 1
    return f"{'-' if value < 0 else ''}{size:{'.0f' if size >= 1000 else '.3g'}} {UNITS[power]}"
