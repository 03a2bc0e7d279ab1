"""Comments that tell a tool to look away, counted by kind and file."""

import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping

from gates.evidence._goalposts.move import Move, Part, moved
from gates.model import Location

KINDS = {
    "pragma: no cover": r"pragma:\s*no\s*cover",
    "pragma: no branch": r"pragma:\s*no\s*branch",
    "pragma: no mutate": r"pragma:\s*no\s*mutate",
    "type: ignore": r"type:\s*ignore",
    "mypy: ignore-errors": r"mypy:\s*(?:ignore-errors|disable-error-code)",
    "pyright: ignore": r"pyright:\s*ignore",
    "noqa": r"noqa\b",
    "nosec": r"nosec\b",
    "pylint: disable": r"pylint:\s*disable",
    "flake8: noqa": r"flake8[:=]\s*noqa",
}
PATTERN = re.compile("|".join(f"(?P<k{i}>{form})" for i, form in enumerate(KINDS.values())), re.IGNORECASE)
NAMES = tuple(KINDS)
NAMED = 5
Found = dict[str, list[int]]


def compare(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[Move]:
    """Yield for each kind of pragma of which there are more now the files that have more of it."""
    old, new = ({path: pragmas(content) for path, content in files.items()} for files in (before, after))
    for kind in NAMES:
        if _count(new, kind) <= _count(old, kind):
            continue
        more = [
            (path, was, lines)
            for path, found in sorted(new.items())
            if len(lines := found.get(kind, [])) > (was := len(old.get(path, {}).get(kind, [])))
        ]
        if len(more) > NAMED:
            first = ", ".join(path for path, _, _ in more[:NAMED])
            what = f"`# {kind}` in {len(more)} files ({first}, ...)"
            yield moved(Part.PRAGMA, what, sum(w for _, w, _ in more), sum(len(n) for _, _, n in more), None)
            continue
        for path, was, lines in more:
            yield moved(Part.PRAGMA, f"{path} `# {kind}`", was, len(lines), Location(path=path, line=lines[-1]))


def _count(files: Mapping[str, Found], kind: str) -> int:
    return sum(len(found.get(kind, [])) for found in files.values())


def pragmas(content: bytes) -> Found:
    """Return the lines of the pragmas in a file's comments, by kind."""
    found: Found = defaultdict(list)
    try:
        for token in tokenize.tokenize(io.BytesIO(content).readline):
            if token.type == tokenize.COMMENT:
                for match in PATTERN.finditer(token.string):
                    found[NAMES[int((match.lastgroup or "k0")[1:])]].append(token.start[0])
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):  # what was read before the fault counts
        return found
    return found
