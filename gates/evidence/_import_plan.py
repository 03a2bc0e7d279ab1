"""What of the implementation can be imported by name, and what it imports itself."""

import ast
import sys
from pathlib import Path

from pydantic import JsonValue

from gates.context import Context
from gates.evidence.sources import Sources
from gates.evidence.symbols import Resolver
from gates.model import Location
from gates.project.files import files_of
from gates.project.import_paths import import_roots, package_root
from gates.syntax import Unparsed, live_statements
from gates.task.task import Task

TESTS = {"tests", "test"}


class ImportPlan:
    """The modules to import, each with the names that it may have; others' packages to load first; and the rest."""

    def __init__(self, task: Task, context: Context) -> None:
        self.roots = import_roots(task, context)
        self.modules: list[dict[str, JsonValue]] = []
        self.own: set[str] = set()
        self.uses: dict[str, list[Location]] = {}
        self.aside: list[str] = []
        resolver = Resolver(task, Sources(context.root))
        files = [path for path in files_of(task.implementation, context.root) if path.suffix == ".py"]
        for path in files:
            names = _names(path, context, self.roots)
            if isinstance(names, str):
                self.aside.append(f"{context.shown(path)}: {names}")
                continue
            self.modules.append({"path": context.shown(path), "names": list(names)})
            self.own |= {name.split(".")[0] for name in names}
            try:
                self._note_uses(resolver.module(path).tree, context.shown(path))
            except Unparsed:
                continue  # the import itself will tell
        for root in self.roots:  # what lies beside the implementation is the project's too
            self.own |= {path.stem for path in root.iterdir() if path.suffix == ".py" or path.is_dir()}

    @property
    def preload(self) -> list[str]:
        """Return the packages of others that modules import at once when they are imported."""
        return sorted(set(self.uses) - self.own - sys.stdlib_module_names)

    def _note_uses(self, tree: ast.Module, path: str) -> None:
        for node in live_statements(tree.body):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                self.uses.setdefault(name.split(".")[0], []).append(Location(path=path, line=node.lineno))


def _names(path: Path, context: Context, roots: list[Path]) -> tuple[str, ...] | str:
    """Return the names that a file may be imported by, or why it is not imported."""
    inside = path.relative_to(context.root)
    if path.stem == "__main__" or path == context.root / "setup.py":
        return "it is run, not imported"
    if path.stem == "conftest" or TESTS & {*inside.parts}:
        return "it belongs to the tests"
    base = package_root(path)
    if base == path.parent and base not in {context.root, context.root / "src"}:
        return "it lies in no package"
    names = []
    for root in dict.fromkeys((base, *roots)):
        if path.is_relative_to(root):
            parts = path.relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if parts and all(part.isidentifier() for part in parts):
                names.append(".".join(parts))
    return tuple(dict.fromkeys(names)) or "its path is no module name"
