"""Formats, one in a file: each is a pure rendering of a report."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gates.report import Report


@dataclass(frozen=True)
class Format:
    """A format: its name, and the files (name to text) that a report comes to.

    `render` takes the report and the folder of a project's own templates, which need not exist.
    """

    name: str
    render: Callable[[Report, Path | None], dict[str, str]]
