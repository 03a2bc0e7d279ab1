"""Markdown reports of hostile text, from Jinja2 templates that a project may replace one by one."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from inspect import isfunction
from pathlib import Path
from traceback import extract_tb
from types import SimpleNamespace
from urllib.parse import quote

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from gates import __version__
from gates.errors import GatesError, UsageError
from gates.model import Finding, Location, Outcome
from gates.render import Format, _views
from gates.report import GateReport, Report, ranked
from gates.words import visible

SHIPPED = Path(__file__).parent / "templates"
IN_CHECKOUT = Path(__file__).parents[2] / "reports" / "templates"
MISTAKES = (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError, AttributeError)
ASKED = {n: f for n, f in vars(_views).items() if isfunction(f) and f.__module__ == _views.__name__}
VIEWS = SimpleNamespace(ROWS=_views.ROWS, **ASKED)
GROUPS = {"failed": Outcome.FAILED, "unknown": Outcome.UNKNOWN, "aside": Outcome.NOT_APPLICABLE}


def render(report: Report, templates: Path | None) -> dict[str, str]:
    """Return the summary, the audit trail and a page for each gate; raise `UsageError` for a broken template."""
    world = environment(templates)
    with _clear_errors(templates):
        whole = {f"{name}.md": world.get_template(f"{name}.md.j2") for name in ("summary", "audit")}
        pages = {name: template.render(report=report, views=VIEWS) for name, template in whole.items()}
        for gate in report.gates:
            template = world.select_template([f"{gate.name}.md.j2", "gate.md.j2"])
            pages[f"{gate.name}.md"] = template.render(report=report, gate=gate, views=VIEWS, **_groups(gate))
    return pages


def page(template: str, templates: Path | None, **values: object) -> str:
    """Return a page that is made of one template."""
    with _clear_errors(templates, template):
        return environment(templates).get_template(template).render(values).rstrip("\n") + "\n"


def check(templates: Path, draft: Report) -> None:
    """Compile every template beside the project's own, and render a draft: what is broken is known before a run."""
    world = environment(templates)
    for name in world.list_templates(extensions=["j2"]):
        with _clear_errors(templates, name):
            world.get_template(name)
    render(draft, templates)


@contextmanager
def _clear_errors(templates: Path | None, name: str = "summary.md.j2") -> Iterator[None]:
    """Turn what is wrong in a template into one line with its place; a usage error where the project has its own."""
    try:
        yield
    except MISTAKES as error:
        frames = [(f.filename, f.lineno or 1) for f in extract_tb(error.__traceback__) if f.filename.endswith(".j2")]
        file, line = frames[-1] if frames else (name, 1)
        if isinstance(error, jinja2.TemplateSyntaxError):
            file, line = str(error.filename or error.name), error.lineno
        told = f"{file}:{line}:1: wrong template: {' '.join(str(error).split()).rstrip('.') or type(error).__name__}"
        if templates and templates.is_dir():
            raise UsageError(f"{told}; fix or remove what is wrong in {templates}") from error
        raise GatesError(f"{told}; this is a fault of gates, report it") from error


SAFE: dict[tuple[type, str], bool] = {}


class _World(ImmutableSandboxedEnvironment):
    """The sandbox, which asks once for each type and name whether a template may use an attribute."""

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        if (key := (type(obj), attr)) not in SAFE:
            SAFE[key] = super().is_safe_attribute(obj, attr, value)
        return SAFE[key]


def environment(templates: Path | None) -> jinja2.Environment:
    """Return the templates' world: everything printed is escaped, and templates can run no code of their own."""
    shipped = SHIPPED if SHIPPED.is_dir() else IN_CHECKOUT
    return _environment((templates, shipped) if templates else (shipped,))


@cache  # what is checked before a run is compiled for the report, too
def _environment(folders: tuple[Path, ...]) -> jinja2.Environment:
    world = _World(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else markdown("" if value is None else value),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    with suppress(RuntimeError, OSError):  # where there is no folder that nobody else writes to
        world.bytecode_cache = jinja2.FileSystemBytecodeCache(pattern=f"gates-{__version__}-%s.cache")
    world.filters |= {form.__name__: form for form in (inline, prose, code, cell, told, link, block)}
    return world


def _groups(gate: GateReport) -> dict[str, list[Finding]]:
    findings = _views.told_once(ranked(gate.findings))
    groups = {name: [f for f in findings if f.outcome is outcome and not f.waived] for name, outcome in GROUPS.items()}
    return groups | {"waived": [f for f in findings if f.waived]}


FORMAT = Format(name="markdown", render=render)


SPECIAL = re.compile(r"([\\`*|~$]|](?=[(\[:]))")
OPENING_UNDERSCORES = re.compile(r"(?<![0-9A-Za-z_])_+")  # one that follows a letter can only end what another began
ENTITY = re.compile(r"&(?=[#0-9A-Za-z])")
LEADING = re.compile(r"^(>|[#+=-]+(?=\s|$))")
NAME = re.compile(r"[\w./:\[\](){},=<>*$'\"+-]+")
ADDRESS = r"(?:(?:https?|ftp)://|www\.)[^\s|`<>]+"
LIVE = re.compile(rf"((?:(?<!\w)(?:[\w.+-]*@\w[\w./-]*|(?:[\w.-]+/[\w.-]+)?#\d+|GH-\d+|{ADDRESS}))+)")
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
    if not (plain := visible(_one_line(str(text)))):
        return Markup("")
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
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
    shown = cell(str(location)) if location else Markup("-")
    if location is None or web is None:
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
    shown = [f"`{piece}`" if i % 2 else _plain(piece) for i, piece in enumerate(LIVE.split(visible(line)))]
    return Markup("".join(shown))  # noqa: S704  # escaped, or a span without backticks


def _plain(text: str) -> str:
    plain = SPECIAL.sub(r"\\\1", ENTITY.sub("&amp;", text).replace("<", "&lt;"))
    return OPENING_UNDERSCORES.sub(lambda run: r"\_" * len(run[0]), plain)


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= LIMIT else f"{joined[:LIMIT]} [... {len(joined) - LIMIT} characters more]"
