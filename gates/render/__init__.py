"""Formats, one in a file: each is a pure rendering of a report."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gates.report import Report


class Format(NamedTuple):
    """A format: its name, and what renders a report, with a project's own templates if it has some, into files."""

    name: str
    render: Callable[[Report, Path | None], dict[str, str]]
