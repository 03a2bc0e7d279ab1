"""Markdown reports, from Jinja2 templates that a project may replace one by one."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import SimpleNamespace

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup
from pydantic import BaseModel

from gates import __version__
from gates.errors import GatesError, UsageError
from gates.model import Outcome
from gates.render import Format, _causes, _views, escape
from gates.report import GateReport, Report, ranked

SHIPPED = Path(__file__).parent / "templates"
IN_CHECKOUT = Path(__file__).parents[2] / "reports" / "templates"
MISTAKES = (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError, AttributeError)
VIEWS = SimpleNamespace(**{f.__name__: f for f in _views.OFFERED})
SUMMARY = "summary.md.j2"
WHOLE = ("summary", "audit")
ANY_GATE = "gate.md.j2"


def render(report: Report, templates: Path | None) -> dict[str, str]:
    """Return the summary, the audit trail and a page for each gate; raise `UsageError` for a broken template."""
    world = environment(templates)
    with _clear_errors(templates):
        pages = {f"{name}.md": world.get_template(f"{name}.md.j2").render(report=report, views=VIEWS) for name in WHOLE}
        for gate in report.gates:
            template = world.select_template([f"{gate.name}.md.j2", ANY_GATE])
            pages[f"{gate.name}.md"] = template.render(report=report, gate=gate, views=VIEWS, **_groups(gate))
    return pages


def page(template: str, templates: Path | None, **values: object) -> str:
    """Return a page that is made of one template."""
    with _clear_errors(templates, template):
        return environment(templates).get_template(template).render(values).rstrip("\n") + "\n"


def check(templates: Path | None) -> None:
    """Compile every template beside the project's own, so that one that is broken is known before anything is run."""
    if not templates or not templates.is_dir():
        return
    world = environment(templates)
    for name in world.list_templates():
        if name.endswith(".j2"):
            with _clear_errors(templates, name):
                world.get_template(name)


@contextmanager
def _clear_errors(templates: Path | None, name: str = SUMMARY) -> Iterator[None]:
    """Turn what is wrong in a template into one clear line, with the template and the line that is wrong."""
    try:
        yield
    except jinja2.TemplateSyntaxError as error:
        raise _wrong(str(error.filename or error.name), error.lineno, str(error.message), templates) from error
    except MISTAKES as error:
        lines = [(f.filename, f.lineno or 1) for f in extract_tb(error.__traceback__) if f.filename.endswith(".j2")]
        own = templates / name if templates else Path(name)
        place = lines[-1] if lines else (str(own) if own.is_file() else name, 1)
        raise _wrong(*place, " ".join(str(error).split()) or type(error).__name__, templates) from error


def _wrong(file: str, line: int, reason: str, templates: Path | None) -> GatesError:
    """Return the error for a template: of the project's own it is a usage error, of a shipped one a fault of ours."""
    if templates and templates.is_dir():
        own = Path(file).is_relative_to(templates)
        fix = "fix or remove the template" if own else f"a template in {templates} may lack what it needs: fix that"
        return UsageError(f"{file}:{line}:1: wrong template: {reason}; {fix}")
    return GatesError(f"{file}:{line}:1: wrong template: {reason}; this is a fault of gates, report it")


def environment(templates: Path | None) -> jinja2.Environment:
    """Return the templates' world: everything printed is escaped, and templates can run no code of their own."""
    shipped = SHIPPED if SHIPPED.is_dir() else IN_CHECKOUT
    return _environment((templates, shipped) if templates else (shipped,))


@cache  # what is checked before a run is compiled for the report, too
def _environment(folders: tuple[Path, ...]) -> jinja2.Environment:
    world = _Sandbox(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        finalize=_escaped,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    with suppress(RuntimeError, OSError):  # where there is no folder that nobody else writes to
        world.bytecode_cache = jinja2.FileSystemBytecodeCache(pattern=f"gates-{__version__}-%s.cache")
    shown = (escape.inline, escape.prose, escape.code, escape.cell, escape.told, escape.link, escape.block)
    world.filters |= {form.__name__: form for form in shown}
    return world


class _Sandbox(ImmutableSandboxedEnvironment):
    """Templates see values: of a report its fields, never its methods, which could read files or load code."""

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        """Refuse whatever can be called on a value of the model."""
        held = obj if isinstance(obj, type) else type(obj)
        return not (issubclass(held, BaseModel) and callable(value)) and super().is_safe_attribute(obj, attr, value)


def _escaped(value: object) -> Markup:
    return value if isinstance(value, Markup) else escape.markdown("" if value is None else value)


def _groups(gate: GateReport) -> dict[str, object]:
    """Return a gate's findings by outcome, worst first."""
    findings = _causes.told_once(ranked(gate.findings))
    waived = [f for f in findings if f.waived]
    findings = [f for f in findings if not f.waived]
    return {
        "waived": waived,
        "failed": [f for f in findings if f.outcome is Outcome.FAILED],
        "unknown": [f for f in findings if f.outcome is Outcome.UNKNOWN],
        "passed": [f for f in findings if f.outcome is Outcome.PASSED],
        "aside": [f for f in findings if f.outcome is Outcome.NOT_APPLICABLE],
    }


FORMAT = Format(name="markdown", render=render)
