"""Text of the tested project is hostile: nothing in it may become markup where it is rendered."""

import re
from urllib.parse import quote

from markupsafe import Markup

from gates.model import Location
from gates.words import visible

SPECIAL = re.compile(r"([\\`*|~$]|](?=[(\[:]))")
OPENING_UNDERSCORES = re.compile(r"(?<![0-9A-Za-z_])_+")  # one that follows a letter can only end what another began
ENTITY = re.compile(r"&(?=[#0-9A-Za-z])")
LEADING = re.compile(r"^(>|[#+=-]+(?=\s|$))")
NAME = re.compile(r"[\w./:\[\](){},=<>*$'\"+-]+")
NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
SPAN = re.compile(r"((?<!`)`[^`|\n]+`(?!`))")
LIMIT = 600


def markdown(text: object) -> Markup:
    """Return text for the flow of a page: one line, no markup, no control characters, no list or heading begun."""
    return _begun(inline(text))


def inline(text: object) -> Markup:
    """Return text for the middle of a line, such as a table's cell: one line, no markup, no control characters."""
    return _escaped(_one_line(str(text)))


def prose(text: object) -> Markup:
    """Return what gates itself advises, as flowing text or a cell; what stands between backticks is a code span."""
    pieces = SPAN.split(_one_line(str(text)))
    shown = [code(piece[1:-1]) or _escaped(piece) if i % 2 else _escaped(piece) for i, piece in enumerate(pieces)]
    return _begun(Markup("").join(shown))


def code(text: object) -> Markup:
    """Return text as an inline code span that nothing in it can close."""
    plain = visible(_one_line(str(text)))
    if not plain:
        return Markup("")
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return Markup(f"{fence}{pad}{plain}{pad}{fence}")  # noqa: S704  # nothing in it can close the span


def cell(text: object) -> Markup:
    """Return text as a code span inside a table, where a bar would end the cell."""
    return Markup(str(code(text)).replace("|", "\\|"))  # noqa: S704  # as `code`


def told(text: object) -> Markup:
    """Return text for a table's cell: one word that would need escapes, such as the name of code, as a code span."""
    escaped = inline(text)
    return cell(text) if NAME.fullmatch(str(text)) and str(escaped) != str(text) else escaped


def link(location: Location | None, web: str | None) -> Markup:
    """Return a place as a code span for a table's cell, linked to where this revision can be read on the web."""
    if location is None:
        return Markup("-")
    shown = cell(str(location))
    if web is None:
        return shown
    address = f"{quote(web, safe=':/-._~%')}{quote(location.path)}"
    last = f"-L{location.last_line}" if location.last_line else ""
    lines = f"#L{location.line}{last}" if location.line else ""
    return Markup(f"[{shown}]({address}{lines})")  # noqa: S704  # quoted


def block(text: object) -> Markup:
    """Return text as a fenced block whose fence is longer than any in it."""
    lines = [visible(line) for line in str(text).splitlines()]
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup("\n".join([f"{fence}text", *lines, fence]))  # noqa: S704  # nothing in it can close the block


def _begun(line: Markup) -> Markup:
    """Return an escaped line that begins no list and no heading."""
    return Markup(NUMBERED.sub(r"\1\\\2", LEADING.sub(r"\\\1", str(line))))  # noqa: S704  # as it was


def _escaped(line: str) -> Markup:
    plain = ENTITY.sub("&amp;", visible(line)).replace("<", "&lt;")
    opening = OPENING_UNDERSCORES.sub(lambda run: r"\_" * len(run[0]), SPECIAL.sub(r"\\\1", plain))
    return Markup(opening)  # noqa: S704  # escaped in these lines


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= LIMIT else f"{joined[:LIMIT]} [... {len(joined) - LIMIT} characters more]"
