"""What tests import from files beside them: limits and lists of cases that stand in one file and count in another."""

import ast
import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from gates.evidence._goalposts.two_states import TwoStates, is_under

Values = dict[str, ast.expr]
Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Neighbours:
    """The Python files of one state, by path, that tests may import from."""

    files: Mapping[str, bytes]
    _known: dict[str, Values] = field(default_factory=dict)

    def values(self, path: str, module: ast.Module) -> Values:
        """Return the values that a file imports, by the names that it uses for them."""
        found: Values = {}
        for node in _imports(module):
            for bound, file, taken in self._bound(path, node):
                found |= dict(_taken(self._values_of(file), bound, taken))
        return found

    def used_by(self, path: str) -> set[str]:
        """Return the files that a file imports, and those that they do."""
        found, open_ = set[str](), {path}
        while open_:
            one = open_.pop()
            found.add(one)
            named = {file for node in _imports(_parsed(self.files[one])) for _, file, _ in self._bound(one, node)}
            open_ |= named - found
        return found - {path}

    def _bound(self, path: str, node: Import) -> Iterator[tuple[str, str, str | None]]:
        """Yield the name that an import gives, the file it leads to, and what of it, `None` for the module itself."""
        for alias in node.names:
            name = alias.asname or alias.name
            if isinstance(node, ast.Import):
                if file := self._file(path, alias.name, 0):
                    yield name, file, None
            elif file := self._file(path, ".".join(filter(None, [node.module, alias.name])), node.level):
                yield name, file, None
            elif file := self._file(path, node.module or "", node.level):
                yield name, file, alias.name

    def _file(self, path: str, name: str, level: int) -> str | None:
        """Return the file of a module: beside the importing one or in a folder above it."""
        folder = posixpath.dirname(path)
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        steps = name.replace(".", "/")
        for start in [folder] if level else _upwards(folder):
            for file in (f"{steps}.py", posixpath.join(steps, "__init__.py")):
                if (found := posixpath.join(start, file)) in self.files:
                    return found
        return None

    def _values_of(self, path: str) -> Values:
        if path not in self._known:
            module = _parsed(self.files[path])
            self._known[path] = _assigned(module.body, "")  # all that a circle of imports gets to see
            self._known[path] = {**self.values(path, module), **self._known[path]}
        return self._known[path]


def with_users(
    old: Mapping[str, bytes], new: Mapping[str, bytes], states: TwoStates, paths: Collection[str]
) -> tuple[dict[str, bytes], dict[str, bytes], Neighbours, Neighbours]:
    """Add to changed tests those that are as they were and import from what is not; return what they import from."""
    folders = {folder for path in paths if (folder := posixpath.dirname(path.split("::")[0]))}
    changed = [*states.changed((*paths, *folders), ".py")]
    if not any(changed):
        return {**old}, {**new}, Neighbours({}), Neighbours({})
    before, after = map(Neighbours, states.whole((*paths, *folders), ".py"))
    moved = {*changed[0], *changed[1]}
    asked = [path.split("::")[0] for path in paths]
    users = {
        path: content
        for path, content in _mentioning(after.files, moved).items()
        if path not in moved and any(is_under(path, one) for one in asked)
        if path in before.files and moved & (before.used_by(path) | after.used_by(path))
    }
    return {**users, **old}, {**users, **new}, before, after


def _mentioning(files: Mapping[str, bytes], moved: Collection[str]) -> dict[str, bytes]:
    """Return the files that name one of some modules, or one that does: to parse them all takes long."""
    found: dict[str, bytes] = {}
    names = told = {_name(path) for path in moved}
    while names:
        fresh = {path: c for path, c in files.items() if path not in found and any(name in c for name in names)}
        found |= fresh
        names = {_name(path) for path in fresh} - told
        told = told | names
    return found


def _name(path: str) -> bytes:
    """Return the word that an import of a file must hold; a package can be imported from without its name."""
    stem = posixpath.basename(path).removesuffix(".py")
    return b"import" if stem == "__init__" else stem.encode("utf-8", "surrogateescape")


def _taken(there: Values, bound: str, taken: str | None) -> Iterator[tuple[str, ast.expr]]:
    """Yield the values of a module as an import names them: all of them, one, or those of a class."""
    for name, value in there.items():
        if taken is None:
            yield f"{bound}.{name}", value
        elif taken == "*":
            yield name, value
        elif name == taken or name.startswith(f"{taken}."):
            yield bound + name[len(taken) :], value


def _assigned(body: list[ast.stmt], prefix: str) -> Values:
    """Return what a module or a class gives a value to, once."""
    found: dict[str, list[ast.expr]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef) and not prefix:
            found |= {name: [value] for name, value in _assigned(node.body, f"{node.name}.").items()}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                found.setdefault(f"{prefix}{target.id}", []).append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _imports(module: ast.Module) -> Iterator[Import]:
    return (node for node in ast.walk(module) if isinstance(node, ast.Import | ast.ImportFrom))


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


@lru_cache(maxsize=256)
def _parsed(content: bytes) -> ast.Module:
    """Return a file's tree; one that cannot be read has nothing to import, which is said where its tests are."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
