"""The implementation as it stands: which lines each criterion's symbols and rules come to."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from gates import registry, rules
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.kind import Evidence
from gates.model import Location, Model
from gates.rules.code_rule import CodeRule
from gates.syntax import Definition, SourceModule, Unparsed, live_nodes, member, module_file, origin, parse
from gates.task import CodeBinding, Task

MAX_BYTES = 2 * 1024 * 1024
MAX_HOPS = 5
TYPE_TESTS = {"isinstance", "issubclass", "cast", "hasattr"}


class Use(Model):
    """A name that a symbol must use, and the lines of live code that do."""

    name: str
    lines: tuple[int, ...]


class SymbolTrace(Model):
    """A symbol and the lines that it resolves to, or the reason why it does not; `checked` says it was looked at."""

    symbol: str
    wanted: tuple[str, ...]
    location: Location | None
    uses: tuple[Use, ...] = ()
    problem: str = ""
    checked: bool = True


class RuleSite(Model):
    """A place that a code rule speaks of."""

    location: Location
    ok: bool
    message: str


class RuleTrace(Model):
    """What a code rule found in the implementation."""

    rule: str
    sites: tuple[RuleSite, ...]
    problem: str = ""


class SourceTree(Evidence):
    """The implementation's files, resolved for every code binding of the task."""

    files: int
    symbols: tuple[SymbolTrace, ...]
    rules: tuple[RuleTrace, ...]
    unparsed: tuple[str, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Parse the implementation and resolve every binding."""
        modules: dict[str, SourceModule] = {}
        unparsed: list[str] = []
        paths = [path for path in files_of(task.implementation, context.root) if path.suffix == ".py"]
        if not paths:
            raise EvidenceUnavailable(f"no Python file in {', '.join(task.implementation)} ({task.path})")
        for path in paths:
            try:
                modules[context.shown(path)] = _parsed(path, context)
            except Unparsed as error:
                unparsed.append(str(error))
        bindings = [binding for criterion in task.criteria for binding in criterion.code]
        known = {rule.id: rule for rule in registry.values(rules, CodeRule)}
        wanted = sorted({binding.rule for binding in bindings if binding.rule})
        return cls(
            how="the implementation's syntax trees",
            files=len(paths),
            symbols=tuple(_resolve(binding, context) for binding in bindings if binding.symbol),
            rules=tuple(_apply(name, known, modules) for name in wanted),
            unparsed=tuple(unparsed),
        )

    def symbol(self, binding: CodeBinding) -> SymbolTrace | None:
        """Return the trace of a binding."""
        wanted = (binding.symbol, binding.uses)
        return next((trace for trace in self.symbols if (trace.symbol, trace.wanted) == wanted), None)

    def rule(self, name: str | None) -> RuleTrace | None:
        """Return what a rule found."""
        return next((trace for trace in self.rules if trace.rule == name), None)


def files_of(paths: tuple[str, ...], root: Path) -> list[Path]:
    """Return the files under the paths of a task, caches and hidden files left out, in the order of their names."""
    found: set[Path] = set()
    for path in paths:
        base = root / path.split("::")[0]
        if base.is_file():
            found.add(base)
        elif base.is_dir():
            found |= {file for file in base.rglob("*") if file.is_file() and not _is_byproduct(file.relative_to(base))}
    return sorted(found)


def _is_byproduct(path: Path) -> bool:
    return any(part == "__pycache__" or part.startswith(".") for part in path.parts) or path.suffix == ".pyc"


def _roots(context: Context) -> tuple[Path, ...]:
    return (context.root, context.root / "src")


def _parsed(path: Path, context: Context) -> SourceModule:
    shown = context.shown(path)
    if path.stat().st_size > MAX_BYTES:
        raise Unparsed(f"{shown}:1: {path.stat().st_size} bytes, more than {MAX_BYTES}: not read")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Unparsed(f"{shown}:1: {error.strerror or error}") from error
    base = next(root for root in reversed(_roots(context)) if path.is_relative_to(root))
    return parse(text, shown, ".".join(path.relative_to(base).parent.parts))


def _resolve(binding: CodeBinding, context: Context) -> SymbolTrace:
    symbol = binding.symbol or ""
    module_name, _, names = symbol.partition(":")
    try:
        found = _find(module_name, names.split("."), context, hops=0)
    except Unparsed as error:
        return SymbolTrace(
            symbol=symbol, wanted=binding.uses, location=None, problem=f"not checked, {error}", checked=False
        )
    if isinstance(found, str):
        return SymbolTrace(symbol=symbol, wanted=binding.uses, location=None, problem=found)
    module, node = found
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return SymbolTrace(
        symbol=symbol,
        wanted=binding.uses,
        location=Location(path=module.path, line=first, last_line=node.end_lineno),
        uses=tuple(Use(name=name, lines=tuple(_use_lines(name, node, module))) for name in binding.uses),
    )


def _find(module_name: str, names: list[str], context: Context, *, hops: int) -> tuple[SourceModule, ast.stmt] | str:
    """Find a symbol, following re-exports; return it with its module, or the reason why it is not there."""
    path = module_file(module_name, _roots(context))
    if path is None:
        return f"there is no module {module_name!r} in the project"
    module = _parsed(path, context)
    node: ast.stmt | None = None
    body = module.tree.body
    for depth, name in enumerate(names):
        node = member(body, name)
        if node is None:
            return f"{module.path} defines no {'.'.join(names[: depth + 1])!r}"
        if isinstance(node, ast.ImportFrom) and hops < MAX_HOPS:
            package = ".".join(path.relative_to(context.root).parent.parts)
            original = next(a.name for a in node.names if (a.asname or a.name) == name)
            return _find(origin(node, package), [original, *names[depth + 1 :]], context, hops=hops + 1)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return f"{module.path}:{node.lineno} only imports {name!r}; name the symbol where it is defined"
        body = node.body if isinstance(node, Definition) else []
    assert node is not None
    return module, node


def _use_lines(name: str, node: ast.AST, module: SourceModule) -> Iterator[int]:
    """Yield the lines of live code where a dotted name does something; a mere mention is no use."""
    mentions = {inner for outer in live_nodes(node) for part in _mentions(outer) for inner in ast.walk(part)}
    own = _bound_here(node)
    seen = set()
    for inner in live_nodes(node):
        if not isinstance(inner, ast.Attribute | ast.Name) or inner in mentions or inner.lineno in seen:
            continue
        if not isinstance(inner.ctx, ast.Load) or (_root(inner) in own and _root(inner) in module.aliases):
            continue
        if module.dotted(inner) == name:
            seen.add(inner.lineno)
            yield inner.lineno


def _bound_here(node: ast.AST) -> set[str]:
    """Return the names that a definition binds itself, as parameters or by assignment: they hide imports."""
    bound = {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}
    return bound | {i.id for i in ast.walk(node) if isinstance(i, ast.Name) and isinstance(i.ctx, ast.Store)}


def _root(node: ast.expr) -> str:
    """Return the first name of `a.b.c`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _mentions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node where a name only stands: annotations, type tests, `except`, bare expressions."""
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
        yield node.annotation
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
        yield node.returns
    elif isinstance(node, ast.ExceptHandler) and node.type:
        yield node.type
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute | ast.Name):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TYPE_TESTS:
        yield from node.args


def _apply(name: str, known: dict[str, CodeRule], modules: dict[str, SourceModule]) -> RuleTrace:
    if name not in known:
        return RuleTrace(
            rule=name, sites=(), problem=f"there is no code rule {name!r}; known: {', '.join(sorted(known))}"
        )
    sites = tuple(
        RuleSite(
            location=Location(path=path, line=site.line, last_line=site.last_line),
            ok=site.ok,
            message=site.message,
        )
        for path, module in modules.items()
        for site in known[name].look(module)
    )
    return RuleTrace(rule=name, sites=sites)
