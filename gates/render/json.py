"""The report itself, as `result.json`; every other format is made from the same value."""

from pathlib import Path

from gates.render import Format
from gates.report import Report


def render(report: Report, _templates: Path | None) -> dict[str, str]:
    """Return the report as JSON, in UTF-8, with a line for each field."""
    return {"result.json": report.model_dump_json(indent=2, by_alias=True) + "\n"}


FORMAT = Format(name="json", render=render)
