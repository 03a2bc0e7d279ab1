"""Tables of bars: rows that name what is measured, and hold a condition for it: `Bar("peak", lambda p: p < 0.8)`."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.benchmarks.margins import share_is_smaller
from gates.scan.analyses.benchmarks.siblings import BREACHES, CHECKS
from gates.scan.analyses.benchmarks.verdicts import FAIL, PASS
from gates.scan.analyses.reading.code import constant, function_of, nodes
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
FAR = (0.3, 4)
Measured = tuple[ast.expr, Module]


@dataclass(frozen=True)
class Bar:
    """A condition for what a row names, which is written there, and the same one of a field of that name."""

    name: str
    written: ast.Compare
    meant: ast.Compare
    is_good: bool


def bars(project: Project, module: Module) -> Iterator[Bar]:
    """Yield the conditions in the rows of tables whose names tell whether what meets them is good."""
    for node in nodes(module, ast.Lambda):
        test = node.body if isinstance(node, ast.Lambda) else None
        parent = module.parents.get(node)
        row = module.parents.get(parent) if isinstance(parent, ast.keyword) else parent
        if not isinstance(test, ast.Compare) or not isinstance(node, ast.Lambda) or len(test.ops) > 1 or row is None:
            continue
        label, told = _label(row, node), _told(project, module, row, node)
        meant = _of(label, node, test) if label else None
        if meant is not None and told is not None:
            yield Bar(label, test, meant, told)


def of_shares(project: Project, bar: Bar) -> tuple[bool, Measured] | None:
    """Return whether a share of arms that a bar is for should be small, and where it is made."""
    found = list(_measured(project, bar.name))
    told = {share_is_smaller(value) for value, _ in found}
    smaller = told.pop() if len(told) == 1 else None
    return (smaller, found[0]) if smaller is not None else None


def _label(row: ast.AST, condition: ast.Lambda) -> str:
    """Return the one name in a row, or the key that a condition stands under."""
    if isinstance(row, ast.Dict):
        keys = [key for key, value in zip(row.keys, row.values, strict=True) if value is condition]
        label = constant(keys[0]) if keys else None
        return label if isinstance(label, str) and label.isidentifier() else ""
    names = [v for v in map(constant, _parts(row)) if isinstance(v, str) and v.isidentifier()]
    return names[0] if len(names) == 1 else ""


def _parts(row: ast.AST) -> list[ast.expr]:
    if isinstance(row, ast.Call):
        return [*row.args, *(k.value for k in row.keywords)]
    return row.elts if isinstance(row, ast.Tuple | ast.List) else []


def _told(project: Project, module: Module, row: ast.AST, condition: ast.Lambda) -> bool | None:
    """Return whether what meets a condition passed, by the field that holds it, or by what its table is called."""
    parent = module.parents.get(row)
    while isinstance(parent, ast.Tuple | ast.List | ast.Dict | ast.Set):
        row, parent = parent, module.parents.get(parent)
    targets = parent.targets if isinstance(parent, ast.Assign) else [getattr(parent, "target", None)]
    names = [_field(project, module, module.parents[condition], condition), tail_of(targets[0]) if targets[0] else ""]
    for name in names:
        passed = PASS.search(name) is not None or CHECKS.search(name) is not None
        failed = FAIL.search(name) is not None or BREACHES.search(name) is not None
        if passed or failed:
            return passed if passed is not failed else None
    return None


def _field(project: Project, module: Module, around: ast.AST, condition: ast.Lambda) -> str:
    """Return the field of an object that a condition is handed for."""
    if isinstance(around, ast.keyword):
        return around.arg or ""
    if not isinstance(around, ast.Call) or condition not in around.args:
        return ""
    info = project.classes.get(project.scope_at(around, module).dotted(around.func) or "")
    if info is None or "__init__" in info.methods:
        made = info.methods["__init__"].args.args[1:] if info is not None else []
        fields = [arg.arg for arg in made]
    else:
        body = [each for owner in reversed(project.order_of(info)) for each in owner.node.body]
        own = [each for each in body if isinstance(each, ast.AnnAssign)]
        if any(isinstance(each.value, ast.Call) or "ClassVar" in text_of(each.annotation) for each in own):
            return ""  # not each of them may be handed in its turn
        fields = list(dict.fromkeys(tail_of(each.target) for each in own))
    at = around.args.index(condition)
    return fields[at] if at < len(fields) else ""


def _of(label: str, condition: ast.Lambda, test: ast.Compare) -> ast.Compare | None:
    """Return a condition, of a field of a name, with its bar on the right."""
    names = [arg.arg for arg in condition.args.args]
    sides = [test.left, test.comparators[0]]
    at = [isinstance(side, ast.Name) and [side.id] == names for side in sides]
    kind = type(test.ops[0])
    if sum(at) != 1 or kind not in TURNED or any(isinstance(n, ast.Name) and n.id in names for n in walk(sides[at[0]])):
        return None
    measured = ast.Attribute(ast.Name("", ast.Load()), label, ast.Load())
    sign = kind if at[0] else TURNED[kind]
    return ast.copy_location(ast.Compare(measured, [sign()], [sides[at.index(False)]]), test)


def _measured(project: Project, name: str) -> Iterator[Measured]:
    """Yield what the program puts under a key, or hands on by a name, but for constants."""
    for module in project.modules.values():
        for value in _under(module, name):
            made = value
            if isinstance(value, ast.Name):
                before = set_before(function_of(value, module) or module.tree, value.id, value.lineno)
                made = before[0][0] if len(before) == 1 else value
            if not isinstance(made, ast.Constant | ast.Lambda):
                yield made, module


def _under(module: Module, name: str) -> Iterator[ast.expr]:
    for node in nodes(module, ast.Dict, ast.Assign, ast.keyword):
        if isinstance(node, ast.Dict):
            keyed = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in keyed if key is not None and constant(key) == name)
        elif isinstance(node, ast.keyword) and node.arg == name:
            yield node.value
        elif isinstance(node, ast.Assign):
            stored = (t for t in node.targets if isinstance(t, ast.Subscript))
            yield from (node.value for target in stored if constant(target.slice) == name)


def _is_below(bar: Bar) -> bool:
    return isinstance(bar.meant.ops[0], ast.Lt | ast.LtE)


def is_range(bar: Bar, others: list[Bar]) -> bool:
    """Return whether another bar for the same thing is met on the other side."""
    return any(each.name == bar.name and _is_below(each) is not _is_below(bar) for each in others)


def problem_of(bar: Bar, *, smaller: bool) -> str | None:
    """Return what is wrong with a condition for a share of arms that should be small, or large."""
    limit = constant(bar.meant.comparators[0])
    is_far = isinstance(limit, int | float) and not FAR[0] < limit < FAR[1]  # a bound of sense
    if is_far or _is_below(bar) is (smaller is bar.is_good):
        return None
    return f"{text_of(bar.written)} is true where the new arm is {'worse' if bar.is_good else 'better'}"
