"""What a setting is where nobody changes it, which conditions then hold, and what functions of settings give."""

import ast
from collections.abc import Callable

from gates.scan.analyses.reading.called import Called, Made, called
from gates.scan.analyses.reading.code import keyword
from gates.scan.analyses.settings.defaults import callers_pass, defaults, member, under
from gates.scan.analyses.settings.makers import given
from gates.scan.analyses.settings.tables import table
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, is_property, tail_of
from gates.scan.program.nodes import is_none
from gates.scan.program.scope import Scope

MAX_HOPS = 5
MAX_WAYS = 8  # from a dictionary to where it is written out
CHANGES = frozenset({"replace", "evolve", "_replace", "model_copy"})
LOOKUPS = frozenset({"get", "getenv", "pop", "setdefault"})
Meant = Callable[[ast.expr, Scope], object]


def setting(node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> object:
    """Return the constant that a setting is by default; `None` where that is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if hops <= 0:
        return None
    told = _handed(node, scope, hops - 2)
    if len(told - {None}) > 1 or (told and None not in told):
        return told.pop() if len(told) == 1 else None
    if isinstance(node, ast.Call):
        if tail_of(node.func) in LOOKUPS and node.args:
            kept = _looked_up(node, scope, hops - 1)
            if kept is not None:
                return setting(kept[0], kept[1], hops - 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"lower", "strip"}:
            return setting(node.func.value, scope, hops - 1)
        behind = outcome(node, scope, hops - 1)
    elif isinstance(node, ast.Subscript):
        behind = under(node.value, setting(node.slice, scope, hops - 1), scope, MAX_WAYS)
    elif (known := member(node, scope)) is not None:
        return known
    else:
        behind = scope.through(node) or next(defaults(node, scope), None) or outcome(node, scope, hops - 1)
    return setting(behind[0], behind[1], hops - 1) if behind is not None else None


def _handed(node: ast.expr, scope: Scope, hops: int) -> set[object]:
    """Return the constants that callers pass for a parameter, or makers of objects for a field, by default."""
    made = handed(node, scope) if hops > 0 else ()
    return {setting(each[0], each[1], hops) if each is not None else None for each in made}


def _looked_up(call: ast.Call, scope: Scope, hops: int) -> Made | None:
    """Return what a dictionary that is written out has under a key, else what is asked for instead."""
    own = call.func.value if isinstance(call.func, ast.Attribute) else None
    kept = under(own, setting(call.args[0], scope, hops), scope, MAX_WAYS) if own is not None else None
    return kept or ((call.args[1], scope) if len(call.args) == 2 else None)


def holds(node: ast.expr, scope: Scope, meant: Meant = setting, hops: int = MAX_HOPS) -> bool | None:
    """Return whether a condition on settings holds where nobody changes these; `None` where that is not known."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inside = holds(node.operand, scope, meant, hops)
        return None if inside is None else not inside
    if isinstance(node, ast.BoolOp):
        parts = [holds(part, scope, meant, hops) for part in node.values]
        ending = isinstance(node.op, ast.Or)
        return ending if ending in parts else None if None in parts else not ending
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node, scope, meant)
    if isinstance(node, ast.IfExp):
        side = holds(node.test, scope, meant, hops)
        return None if side is None else holds(node.body if side else node.orelse, scope, meant, hops)
    behind = (scope.through(node) or outcome(node, scope, hops - 1, meant)) if hops > 0 else None
    if behind is not None and isinstance(behind[0], ast.Compare | ast.BoolOp | ast.UnaryOp | ast.IfExp):
        return holds(behind[0], behind[1], meant, hops - 1)
    value = setting(node, scope)
    if value is not None or not isinstance(node, ast.Name | ast.Attribute):
        return value if isinstance(value, bool) else None
    made = handed(node, scope) if hops > 0 else ()
    sides = {holds(*each, meant, hops - 1) if each is not None else None for each in made}
    return sides.pop() if len(sides) == 1 else None


def handed(node: ast.expr, scope: Scope) -> list[Made | None]:
    """Return what callers pass for a parameter, or makers of objects for a field; `None` where one does not tell."""
    if isinstance(node, ast.Name):
        return list(callers_pass(node.id, scope))
    if not isinstance(node, ast.Attribute):
        return []
    thing = made_of(node.value, scope, MAX_HOPS)
    if thing is None or thing[0] is None:
        return given(node, scope)
    return [found] if (found := _field(thing[1], node.attr, *thing[0])) is not None else []


def _compared(node: ast.Compare, scope: Scope, meant: Meant) -> bool | None:
    right = node.comparators[0]
    if is_none(right) and isinstance(node.ops[0], ast.Is | ast.IsNot):
        nothing = True if is_nothing(node.left, scope) else None if meant(node.left, scope) is None else False
        return nothing if nothing is None or isinstance(node.ops[0], ast.Is) else not nothing
    several = _several(right, scope)
    left, others = meant(node.left, scope), [meant(part, scope) for part in several]
    known = isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn)
    if left is None or None in others or not known:
        return None
    return (left in others) is not isinstance(node.ops[0], ast.NotEq | ast.IsNot | ast.NotIn)


def _several(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """Return the parts of what something is looked for in, or held against: of `TABLE.values()`, all that it has."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    held = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    found = table(held, scope) if held is not None and tail_of(node.func) == "values" else None  # type: ignore[attr-defined]
    return found[0].values if found is not None else [node]


def is_nothing(node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> bool:
    """Return whether a setting is `None` by default."""
    if _is_set_below(node, scope):
        return False
    behind = (scope.through(node) or next(defaults(node, scope), None)) if hops else None
    return is_none(node) or (behind is not None and is_nothing(behind[0], behind[1], hops - 1))


def _is_set_below(node: ast.expr, scope: Scope) -> bool:
    """Return whether classes that extend the own one set an attribute of it otherwise."""
    if not isinstance(node, ast.Attribute) or tail_of(node.value) != scope.self_name or scope.self_class is None:
        return False
    return any(node.attr in info.attributes for info in scope.project.below(scope.self_class))


def outcome(node: ast.expr, scope: Scope, hops: int, meant: Meant = setting) -> Made | None:
    """Return what a function, a property or a field of the program gives, where the settings tell."""
    if hops <= 0 or not isinstance(node, ast.Call | ast.Attribute):
        return None
    func = node.func if isinstance(node, ast.Call) else node
    thing = made_of(func.value, scope, hops - 1) if isinstance(func, ast.Attribute) else None
    target = scope.project.types.function(node, scope) if isinstance(node, ast.Call) else None
    if target is None and thing is not None and isinstance(func, ast.Attribute):
        found = scope.project.method(thing[1], func.attr)
        if isinstance(node, ast.Attribute) and found is None and thing[0] is not None:
            return _field(thing[1], func.attr, *thing[0])
        target = found[0] if found and is_property(found[0]) is isinstance(node, ast.Attribute) else None
    if target is None:
        return None
    where = scope.project.scope_of(target, scope.module)
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    return _given_back(target, called(where, call, scope, thing[0] if thing is not None else None), meant)


def made_of(node: ast.expr, scope: Scope, hops: int) -> tuple[Made | None, ClassInfo] | None:
    """Return the class of an object, with what made it where that is written: a constructor, a member."""
    info = scope.project.classes.get(scope.dotted(node.func) or "") if isinstance(node, ast.Call) else None
    if info is not None:
        return (node, scope), info
    if isinstance(node, ast.Attribute) and member(node, scope) is not None:
        return (node, scope), scope.project.classes[str(scope.dotted(node)).rpartition(".")[0]]
    if isinstance(node, ast.Name) and node.id == scope.self_name:
        made = scope.made if isinstance(scope, Called) else None
        return (made, scope.self_class) if scope.self_class is not None else None
    if isinstance(node, ast.Subscript):
        behind = under(node.value, setting(node.slice, scope, hops), scope, MAX_HOPS)
    else:
        behind = scope.through(node) or next(defaults(node, scope), None)
    found = made_of(behind[0], behind[1], hops - 1) if behind is not None and hops > 0 else None
    known = scope.class_of(node) if found is None else None
    if found is None and known is None and isinstance(node, ast.Name) and hops > 0:
        return _agreed([made_of(*each, hops - 1) for each in _beginnings(node, scope)])
    return found if known is None else (None, known)


def _beginnings(node: ast.Name, scope: Scope) -> list[Made]:
    """Return what callers pass for a name, or what it was before a choice put a changed copy of it in its place."""
    found = scope.lookup(node.id)
    if found is None or all(binding.kind == "parameter" for binding in found[1]):
        return list(callers_pass(node.id, scope))
    values = [b.node for b in found[1] if b.kind == "value" and isinstance(b.node, ast.expr)]
    firsts = [value for value in values if not _is_changed(value, node.id, found[0])]
    return [(firsts[0], found[0])] if len(firsts) == 1 and len(values) == len(found[1]) else []


def _is_changed(value: ast.expr, name: str, scope: Scope) -> bool:
    """Return whether a choice gives a copy of a variable with fields that nothing tells: `replace(name, key=text)`."""
    if not isinstance(value, ast.Call) or tail_of(value.func) not in CHANGES:
        return False
    own = value.func.value if isinstance(value.func, ast.Attribute) and tail_of(value.func) != "replace" else None
    copied = value.args[0] if value.args else own
    if not isinstance(copied, ast.Name) or copied.id != name:
        return False
    is_chosen = any(isinstance(a, ast.If | ast.IfExp) for a in scope.module.ancestors(value))
    return is_chosen and all(setting(k.value, scope) is None for k in value.keywords)


def _agreed(found: list[tuple[Made | None, ClassInfo] | None]) -> tuple[Made | None, ClassInfo] | None:
    """Return what several objects have in common: of one all that is known, else their class."""
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found) or len({each[1].name for each in known}) > 1:
        return None
    return known[0] if len(known) == 1 else (None, known[0][1])


def _field(owner: ClassInfo, name: str, made: ast.expr, scope: Scope) -> Made | None:
    """Return what a call passes for a field of the class that it makes an object of, or what a member is."""
    if not isinstance(made, ast.Call):
        bound = owner.attributes.get(tail_of(made), []) if name == "value" else []
        return (bound[0][0].node, bound[0][1]) if bound and isinstance(bound[0][0].node, ast.expr) else None
    if "__init__" in owner.methods:
        kept = [(b.node, where) for b, where in owner.attributes.get(name, []) if b.kind == "value"]
        if len(kept) != 1 or not isinstance(kept[0][0], ast.expr):
            return None
        return kept[0][0], called(kept[0][1], made, scope)
    fields = [s.target.id for s in owner.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    at = fields.index(name) if name in fields else len(made.args)
    value = keyword(made, name) or (made.args[at] if at < len(made.args) else None)
    return (value, scope) if value is not None else None


def _given_back(function: Function, scope: Called, meant: Meant) -> Made | None:
    """Return what a function returns on the way that the settings take through it."""
    todo: list[ast.stmt] = list(function.body)
    while todo:
        statement = todo.pop(0)
        if isinstance(statement, ast.Return):
            value = statement.value
            if isinstance(value, ast.IfExp) and (side := holds(value.test, scope, meant)) is not None:
                value = value.body if side else value.orelse
            return (value, scope) if value is not None else None
        if isinstance(statement, ast.If | ast.Match):
            taken = _taken(statement, scope, meant)
            if taken is None:
                return None
            todo = [*taken, *todo]
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            scope = scope.knowing(statement.targets[0].id, statement.value)
        elif not isinstance(statement, ast.Expr | ast.Pass | ast.Assert | ast.Import | ast.ImportFrom):
            return None
    return None


def _taken(statement: ast.If | ast.Match, scope: Scope, meant: Meant) -> list[ast.stmt] | None:
    """Return the side of a choice that the settings take; what only raises is none."""
    if isinstance(statement, ast.If):
        side = holds(statement.test, scope, meant)
        if side is None and all(isinstance(s, ast.Raise) for s in statement.body):
            side = False
        return None if side is None else statement.body if side else statement.orelse
    subject = meant(statement.subject, scope)
    for case in statement.cases if subject is not None else ():
        parts = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
        values = [meant(part.value, scope) for part in parts if isinstance(part, ast.MatchValue)]
        is_any = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
        if case.guard is not None or (not is_any and (len(values) < len(parts) or None in values)):
            return None
        if is_any or subject in values:
            return case.body
    return None
