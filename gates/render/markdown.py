"""Markdown reports, from Jinja2 templates that a project may replace one by one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup
from pydantic import BaseModel

from gates.errors import UsageError
from gates.model import GateReport, Outcome, Report
from gates.ranking import ranked
from gates.render import _views, escape
from gates.render.format import Format

SHIPPED = Path(__file__).parent / "templates"
IN_CHECKOUT = Path(__file__).parents[2] / "reports" / "templates"
MISTAKES = (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError, AttributeError)
VIEWS = SimpleNamespace(**{f.__name__: f for f in _views.OFFERED})
SUMMARY = "summary.md.j2"
ANY_GATE = "gate.md.j2"


def render(report: Report, templates: Path | None) -> dict[str, str]:
    """Return the summary and a report for each gate; raise `UsageError` for a project's template that is broken."""
    world = environment(templates)
    with _clear_errors(f"a template in {templates}"):
        pages = {"summary.md": world.get_template(SUMMARY).render(report=report, views=VIEWS)}
        for gate in report.gates:
            template = world.select_template([f"{gate.name}.md.j2", ANY_GATE])
            pages[f"{gate.name}.md"] = template.render(report=report, gate=gate, views=VIEWS, **_groups(gate))
    return pages


def check(templates: Path | None) -> None:
    """Compile every template, so that one that is broken is known before anything is run."""
    world = environment(templates)
    for name in world.list_templates():
        if name.endswith(".j2"):
            with _clear_errors(f"the template {name!r} in {templates}"):
                world.get_template(name)


@contextmanager
def _clear_errors(what: str) -> Iterator[None]:
    """Turn what is wrong in a template into one clear line."""
    try:
        yield
    except jinja2.TemplateSyntaxError as error:
        where = f"{error.filename or error.name}:{error.lineno}"
        raise UsageError(f"{where}:1: template error: {error.message}; mend or remove the template") from error
    except MISTAKES as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{what} cannot be rendered: {reason}; mend or remove it") from error


def environment(templates: Path | None) -> jinja2.Environment:
    """Return the templates' world: everything printed is escaped, and templates can run no code of their own."""
    folders = [templates] if templates else []
    shipped = SHIPPED if SHIPPED.is_dir() else IN_CHECKOUT
    world = _Sandbox(
        loader=jinja2.FileSystemLoader([*folders, shipped]),
        autoescape=True,
        finalize=_escaped,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    shown = (escape.inline, escape.code, escape.cell, escape.link, escape.block)
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
    waived = [f for f in ranked(gate.findings) if f.waived]
    findings = [f for f in ranked(gate.findings) if not f.waived]
    return {
        "waived": waived,
        "failed": [f for f in findings if f.outcome is Outcome.FAILED],
        "unknown": [f for f in findings if f.outcome is Outcome.UNKNOWN],
        "passed": [f for f in findings if f.outcome is Outcome.PASSED],
        "aside": [f for f in findings if f.outcome is Outcome.NOT_APPLICABLE],
    }


FORMAT = Format(name="markdown", render=render)
