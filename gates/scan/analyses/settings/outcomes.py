"""What expressions are in each of the worlds that a program may be run in, by the settings that choose them."""

import ast
from collections.abc import Hashable

from gates.scan.analyses.reading.called import Called, Made, called
from gates.scan.analyses.reading.code import constant
from gates.scan.analyses.settings.defaults import KINDS
from gates.scan.analyses.settings.named import ENUMS, class_made, of_attribute, of_name, returned
from gates.scan.analyses.settings.truths import SUPPORTED, of_device, same, sides, truths_of
from gates.scan.analyses.settings.worlds import Atom, Known, Thing, Truths, Value, Values, World, few
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import is_property, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_DEPTH = 24
MAX_STEPS = 3000
DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)
MAPPINGS = frozenset({"dict", "SimpleNamespace", "MappingProxyType", "OrderedDict"})
CASES = frozenset({"lower", "upper", "strip", "casefold"})


class Outcomes:
    """Answers what expressions are, as far as its steps reach; `cut` where they did not.

    What is the same whatever else is chosen tells nothing of that: it goes on in the world in which it was asked.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.cut = False
        self._left = MAX_STEPS
        self._depth = 0
        self._told: dict[Hashable, Values] = {}
        self._within: dict[Hashable, Called] = {}

    def within(self, scope: Scope, call: ast.Call | None, caller: Scope, made: Made | None = None) -> Called:
        """Return the scope of a function in one call of it, or for one object."""
        key = (scope.function, call, caller, made)
        if key not in self._within:
            plain = Called(scope.project, scope.module, scope.function, scope.outer, scope.owner, made=made)
            self._within[key] = called(scope, call, caller, made) if call is not None else plain
        return self._within[key]

    def truths(self, node: ast.expr, scope: Scope, world: World) -> Truths:
        """Return whether a condition holds, with the worlds in which it does and does not."""
        found: Truths = truths_of(self, node, scope, world) if self._goes_on() else []
        if len(found) < 2:
            return found or [(None, world)]
        return found if len({truth for truth, _ in found}) > 1 else [(found[0][0], world)]

    def values(self, node: ast.expr, scope: Scope, world: World) -> Values:
        """Return what an expression may be, each with the world in which it is."""
        key = (node, scope, world.key)
        if key in self._told:
            return self._told[key]
        if not self._goes_on():
            return [(None, world)]
        self._depth += 1
        self._told[key] = [(None, world)]  # a circle tells nothing
        try:
            found = self._values(node, scope, world)
        finally:
            self._depth -= 1
        self._told[key] = found if len({v for v, _ in found}) > 1 or len(found) < 2 else [(found[0][0], world)]
        return self._told[key]

    def _goes_on(self) -> bool:
        self._left -= 1
        self.cut = self.cut or self._left <= 0
        return self._left > 0 and self._depth < MAX_DEPTH

    def _values(self, node: ast.expr, scope: Scope, world: World) -> Values:
        on = of_device(node)
        if on is not None or isinstance(node, ast.Constant):
            return [(Known(on if not isinstance(node, ast.Constant) else node.value), world)]
        if SUPPORTED.search(tail_of(node.func if isinstance(node, ast.Call) else node)):
            return [(Atom("bfloat16 is supported"), world)]
        if isinstance(node, DISPLAYS):
            return [(Thing(node, scope), world)]
        if isinstance(node, ast.Name):
            return of_name(self, node, scope, world)
        if isinstance(node, ast.Attribute):
            return of_attribute(self, node, scope, world)
        if isinstance(node, ast.Subscript):
            return self._taken_out(node.value, node.slice, None, scope, world)
        if isinstance(node, ast.Call):
            return self._called(node, scope, world)
        if isinstance(node, ast.IfExp):
            chosen = sides(self, node, scope, world)
            return few(pair for side, where in chosen for pair in self.values(side, scope, where))
        if isinstance(node, ast.BoolOp):
            return self._first_of(node, scope, world)
        return self._plain(node, scope, world)

    def _plain(self, node: ast.expr, scope: Scope, world: World) -> Values:
        if isinstance(node, ast.NamedExpr):
            return self.values(node.value, scope, world)
        if isinstance(node, ast.Compare | ast.UnaryOp):
            return [(None if t is None else Known(t), where) for t, where in self.truths(node, scope, world)]
        return [(None, world)]

    def _first_of(self, node: ast.BoolOp, scope: Scope, world: World) -> Values:
        """Return what `a or b` and `a and b` are: the first part that settles it, else the last."""
        open_, found = [world], []
        for part in node.values[:-1]:
            following: list[World] = []
            for where in open_:
                for truth, there in self.truths(part, scope, where):
                    ends = isinstance(node.op, ast.Or)
                    found += self.values(part, scope, there) if truth is None or truth is ends else []
                    following += [there] if truth is None or truth is not ends else []
            open_ = following
        return few([*found, *(pair for where in open_ for pair in self.values(node.values[-1], scope, where))])

    def _taken_out(self, held: ast.expr, key: ast.expr, default: ast.expr | None, scope: Scope, world: World) -> Values:
        """Return what stands under a key of a table, or at a place of a tuple."""
        found: Values = []
        for container, where in self.values(held, scope, world):
            if isinstance(container, Thing) and isinstance(container.node, ast.Call):
                given = next((k.value for k in container.node.keywords if k.arg == constant(key)), None)
                found += self.values(given, container.scope, where) if given is not None else [(None, where)]
                continue
            for wanted, there in self.values(key, scope, where):
                if isinstance(container, Thing) and isinstance(container.node, ast.Dict):
                    told = wanted if wanted is not None else Atom(ast.unparse(key))
                    found += self._under(container, told, default, scope, there)
                elif isinstance(container, Thing) and isinstance(container.node, ast.Tuple | ast.List):
                    at = wanted.value if isinstance(wanted, Known) else None
                    is_in = isinstance(at, int) and -len(container.node.elts) <= at < len(container.node.elts)
                    part = container.node.elts[at] if is_in and isinstance(at, int) else None
                    found += self.values(part, container.scope, there) if part is not None else [(None, there)]
                else:
                    named = wanted.value if isinstance(wanted, Known) else None
                    found.append((Atom(named) if isinstance(named, str) else None, there))
        return few(found)

    def _under(self, table: Thing, wanted: Value, default: ast.expr | None, scope: Scope, world: World) -> Values:
        """Return what stands under a key of a table, in each world in which the key is one of the table's."""
        assert isinstance(table.node, ast.Dict)
        open_, found = [world], []
        for key, value in zip(table.node.keys, table.node.values, strict=True):
            following: list[World] = []
            for where in open_:
                keys = self.values(key, table.scope, where) if key is not None else [(None, where)]
                for truth, there in (pair for known, w in keys for pair in same(wanted, known, w)):
                    found += self.values(value, table.scope, there) if truth is True else []
                    found += [(None, there)] if truth is None else []
                    following += [there] if truth is False else []
            open_ = following
        rest = (pair for where in open_ for pair in self.values(default, scope, where)) if default is not None else ()
        return few([*found, *rest])

    def _called(self, node: ast.Call, scope: Scope, world: World) -> Values:
        """Return what a call gives: of a function of the program, a table's key, a type of numbers by its name."""
        tail = tail_of(node.func)
        held = node.func.value if isinstance(node.func, ast.Attribute) else None
        if tail == "getattr" and len(node.args) > 1:
            return self._got(node, scope, world)
        if tail == "get" and held is not None and node.args:
            default = node.args[1] if len(node.args) > 1 else ast.Constant(None)
            return self._taken_out(held, node.args[0], default, scope, world)
        if tail in CASES and held is not None:
            return [(_spelt(value, tail), where) for value, where in self.values(held, scope, world)]
        if tail in {"str", "bool"} and isinstance(node.func, ast.Name) and node.args:
            return self.values(node.args[0], scope, world)
        info = self.project.classes.get(scope.dotted(node.func) or "")
        if info is not None:
            return self._made(info, node, scope, world)
        target = self.project.types.function(node, scope)
        if target is not None and target.name != "__init__":
            where = self.within(self.project.scope_of(target, scope.module), node, scope)
            return returned(self, target, where, world)
        if held is not None and target is None:
            return self._method(node, held, tail, scope, world)
        return [(Thing(node, scope) if tail in MAPPINGS or tail[:1].isupper() else None, world)]

    def _made(self, info: ClassInfo, node: ast.Call, scope: Scope, world: World) -> Values:
        """Return an object of a class: a member of an enumeration by what it is called with."""
        if not any(str(base).rpartition(".")[2] in ENUMS for base in info.bases):
            return [(Thing(node, scope), world)]
        return self.values(node.args[0], scope, world) if node.args else [(None, world)]

    def _method(self, node: ast.Call, held: ast.expr, tail: str, scope: Scope, world: World) -> Values:
        """Return what a method gives of an object that is only known in a world."""
        found: Values = []
        for value, where in self.values(held, scope, world):
            info = class_made(value)
            method = self.project.method(info, tail) if info is not None else None
            if method is None or not isinstance(value, Thing) or is_property(method[0]):
                found.append((Thing(node, scope) if tail[:1].isupper() else None, where))
                continue
            there = self.within(self.project.scope_of(method[0], method[1]), node, scope, (value.node, value.scope))
            found += returned(self, method[0], there, where)
        return few(found)

    def _got(self, node: ast.Call, scope: Scope, world: World) -> Values:
        """Return what `getattr` gives: a type of numbers by its name, an attribute of something."""
        name = constant(node.args[1])
        if scope.dotted(node.args[0]) != "torch":
            own = ast.copy_location(ast.Attribute(node.args[0], str(name), ast.Load()), node)
            return self.values(own, scope, world) if isinstance(name, str) else [(None, world)]
        found: Values = []
        for value, where in self.values(node.args[1], scope, world):
            if isinstance(value, Known):
                found.append((_type(str(value.value)), where))
                continue
            atom = value if isinstance(value, Atom) else Atom(ast.unparse(node.args[1]))
            for kind in sorted(KINDS):
                short = kind.rpartition(".")[2]
                found += [(_type(short), there) for same_, there in same(atom, Known(short), where) if same_]
        return few(found)


def _type(name: str) -> Value:
    """Return a type of numbers by its name in the library."""
    full = "torch.float16" if name == "half" else f"torch.{name}"
    return Known(full) if full in KINDS else None


def _spelt(value: Value, how: str) -> Value:
    """Return a text in another spelling; a setting is spelt as the program asks for it."""
    if not isinstance(value, Known) or not isinstance(value.value, str):
        return value
    return Known(getattr(value.value, how)())
