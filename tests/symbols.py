"""Symbols of a little project, traced as a task asks for them."""

from collections.abc import Mapping
from pathlib import Path

from building import a_context, a_criterion, a_task, written

from gates.code.symbols import SymbolTrace
from gates.evidence.source_tree import SourceTree

Files = Mapping[str, str | bytes] | str | bytes  # of a package, or its module `m`


def tree(tmp_path: Path, files: Files, *bindings: dict[str, object], where: str = "pkg") -> SourceTree:
    """A package with these files, looked at for what a criterion is bound to."""
    named = {"pkg/m.py": files} if isinstance(files, str | bytes) else files
    task = a_task(implementation=[where], criteria=[a_criterion(code=list(bindings))])
    return SourceTree.collect(task, a_context(written(tmp_path / "project", {f"{where}/__init__.py": "", **named})))


def traced(tmp_path: Path, files: Files, symbol: str, *uses: str, where: str = "pkg") -> SymbolTrace:
    """One symbol of it."""
    (trace,) = tree(tmp_path, files, {"symbol": symbol, "uses": list(uses)}, where=where).symbols
    return trace
