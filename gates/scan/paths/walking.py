"""A walk along the paths of a function: statement by statement, with a set of paths that fork and join."""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial

from gates.code.syntax import constant_truth
from gates.scan.paths.contexts import Paths, Run
from gates.scan.paths.place import Place, apart, branch
from gates.scan.paths.running import Running
from gates.scan.paths.state import Closure, State, Value
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import children, inner, kept, text_of, walk
from gates.scan.program.scope import PREPARES, UNKNOWN, Scope

Loop = ast.For | ast.AsyncFor | ast.While
Turn = Callable[[State, int], State]
FLOW = (ast.Return, ast.Break, ast.Continue, ast.Raise)
TURNS = 2


def _changed(node: ast.AST) -> frozenset[str]:
    """Return the variables and attributes that a statement sets, as they are written."""
    found = (n for n in walk(node) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store))
    return frozenset(map(text_of, found))


def is_exit(node: ast.Raise) -> bool:
    """Return whether a statement ends the program rather than tells of an error: `raise SystemExit(main())`."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "SystemExit"


def is_given_away(node: ast.AST, module: Module) -> bool:
    """Return whether a function stands in another, which hands it on: `return step`, `Engine(step)`, `@on(x)`."""
    around = next((n for n in module.ancestors(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)), None)
    if around is None or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    called = {call.func for call in inner(around, ast.Call)}
    return bool(node.decorator_list) or any(n.id == node.name and n not in called for n in inner(around, ast.Name))


def flows(nodes: Iterable[ast.AST]) -> bool:
    """Return whether statements may leave the block that they stand in; inner functions do not count."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, FLOW):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.expr):
            stack.extend(children(node))
    return False


class Walker(Running):
    """Walks functions of one program for one set of events."""

    def block(self, body: Sequence[ast.stmt], paths: Paths, scope: Scope) -> Paths:
        """Walk statements; paths that ended wait at the end of the block."""
        depth = max((len(path.guards) for path in paths), default=0)
        ended: Paths = []
        for statement in body:
            ended += [path for path in paths if path.ended]
            if not (paths := [path for path in paths if not path.ended]):
                break
            paths = self.joined(self._statement(statement, paths, scope))
            if (passed := _passed_by(statement)) is not None:
                guarded = [(p, "" if p.ended else f"past {_asked_by(passed, self.place(p, scope))}") for p in paths]
                paths = [p.but(guards=(*p.guards, guard)) if guard else p for p, guard in guarded]
        return [p.but(guards=p.guards[:depth]) if len(p.guards) > depth else p for p in (*ended, *paths)]

    def _statement(self, node: ast.stmt, paths: Paths, scope: Scope) -> Paths:  # noqa: C901  # a case for each
        self.count(sum(1 + len(path.words) // 8 for path in paths))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            key, own = f"{scope.module.name}.{node.name}@{node.lineno}", self.project.scope_of(node, scope.module)
            return [path.binds(node.name, Value(key, closure=Closure(node, own, path.names))) for path in paths]
        if isinstance(node, ast.If):
            return self._if(node, paths, scope)
        if isinstance(node, Loop) and node not in self.hot:
            return self.forgotten([node], paths, scope, node)
        if isinstance(node, ast.For | ast.AsyncFor):
            return self._for(node, paths, scope)
        if isinstance(node, ast.While):
            return self._while(node, paths, scope)
        if isinstance(node, ast.With | ast.AsyncWith):
            return self._with(node, list(node.items), paths, scope)
        if isinstance(node, ast.Try | ast.TryStar):
            return self._try(node, paths, scope)
        if isinstance(node, ast.Match):
            return [*paths, *(each for case in node.cases for each in self.block(case.body, paths, scope))]
        if isinstance(node, ast.Return) and node.value is not None:
            return [path.but(ended="return", returned=value) for path, value in self.run(node.value, paths, scope)]
        if isinstance(node, ast.Raise) and is_exit(node):
            paths = [path for path, _ in self.run(node.exc, paths, scope)] if node in self.hot and node.exc else paths
        elif isinstance(node, ast.Raise) and not self.tries:
            return []
        if isinstance(node, FLOW):
            return [path.but(ended=type(node).__name__.lower()) for path in paths]
        return self._plain(node, paths, scope)

    def _plain(self, node: ast.stmt, paths: Paths, scope: Scope) -> Paths:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            return self._assign(node, paths, scope)
        if self.yields and isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            return [path for path, _ in self.run(node.value, paths, scope)]
        if isinstance(node, ast.Expr) and node not in self.hot:
            return [self.touched(node.value, path, scope) for path in paths]
        asked = node.value if isinstance(node, ast.Expr) else node.test if isinstance(node, ast.Assert) else None
        return paths if asked is None or node not in self.hot else [path for path, _ in self.run(asked, paths, scope)]

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, paths: Paths, scope: Scope) -> Paths:
        if node.value is None:
            return paths
        found: Paths = []
        for path, value in self._prepared(node.value, self.run(node.value, paths, scope)):
            here = path
            if isinstance(node, ast.AugAssign):
                here = self.bound(node.target, None, path, scope, node)
            else:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    here = self.bound(target, value, here, scope, node)
            happened = self.happening.of_statement(node, self.place(path, scope), path) if node in self.hot else None
            if happened:
                self.calls.setdefault(happened, tuple(self.frames))
            found.append(here.happens(happened) if happened else here)
        return found

    def _prepared(self, node: ast.expr, run: Run) -> Run:
        """Return what a framework in the program itself made as something unknown, where its method does not tell."""
        if not isinstance(node, ast.Call) or tail_of(node.func) not in PREPARES:
            return run
        told = ((path, value, value.node is node or _is_told(value)) for path, value in run)
        return [(path, value if is_told else replace(value, kind=UNKNOWN)) for path, value, is_told in told]

    def bound(self, target: ast.expr | None, value: Value | None, path: State, scope: Scope, at: ast.AST) -> State:
        """Bind a target, if there is one; without a value it becomes something that nothing is known of."""
        if isinstance(target, ast.Tuple | ast.List):
            made = value.node if value else None
            for index, part in enumerate(target.elts):
                path = self.bound(part, self._element(made, value, index, len(target.elts)), path, scope, at)
            return path
        if isinstance(target, ast.Starred):
            return self.bound(target.value, None, path, scope, at)
        if not isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
            return path
        value = value or Value(f"{text_of(target)}@{getattr(at, 'lineno', 0)}{self.tag(path)}")
        if isinstance(target, ast.Name):
            if scope.function is None:
                return path.stores(f"{scope.module.name}.{target.id}", value)
            return path.binds(target.id, value)
        place = self.place(path, scope)
        key = place.key(target) if isinstance(target, ast.Subscript) else f"{place.key(target.value)}.{target.attr}"
        return path.stores(key, value)

    def _element(self, made: ast.expr | None, value: Value | None, index: int, size: int) -> Value | None:
        if value is not None and value.kind == UNKNOWN:
            return Value(f"{value.key}[{index}]", kind=UNKNOWN)
        if value is None or value.place is None or made is None:
            return None
        if isinstance(made, ast.Tuple | ast.List) and len(made.elts) == size:
            return apart(value.place.value(made.elts[index]), made.elts[index])
        prepared = isinstance(made, ast.Call) and tail_of(made.func) in PREPARES and index < len(made.args)
        if prepared and isinstance(made, ast.Call) and not self._is_own_method(made, value.place):
            return value.place.value(made.args[index])
        kind = UNKNOWN if prepared else None
        if isinstance(made, ast.Call) and not prepared:
            kind = self.project.types.item(made, index, value.place.scope)
        return Value(f"{value.key}[{index}]", owner=self.project.classes.get(kind or ""), kind=kind)

    def _is_own_method(self, call: ast.Call, place: Place) -> bool:
        """Return whether a call runs a method of the program, which may make something else of what it is handed."""
        owner = place.owner_of(call.func.value) if isinstance(call.func, ast.Attribute) else None
        return owner is not None and self.project.method(owner, tail_of(call.func)) is not None

    def _if(self, node: ast.If, paths: Paths, scope: Scope) -> Paths:
        if (truth := constant_truth(node.test)) is not None:
            return self.block(node.body if truth else node.orelse, paths, scope)
        branches = [*node.body, *node.orelse]
        if node not in self.hot and not flows(branches) and not self.hot.matter(branches, scope):
            return self.forgotten(branches, paths, scope, node)
        found: Paths = []
        if node.test in self.hot:
            paths = [path for path, _ in self.run(node.test, paths, scope)]
        for path in paths:
            place = self.place(path, scope)
            guard = _asked_by(node.test, place)
            for side, is_true in branch(node.test, path, place):
                guarded = side.but(guards=(*side.guards, guard if is_true else f"else {guard}"))
                after = self.block(node.body if is_true else node.orelse, [guarded], scope)
                found += [each.but(guards=path.guards) for each in after]
        return found

    def forgotten(self, body: Iterable[ast.stmt], paths: Paths, scope: Scope, at: ast.AST) -> Paths:
        """Let what skipped statements set become something that nothing is known of."""
        for target in map(_parsed, sorted({name for node in body for name in kept(node, _changed)})):
            paths = [self.bound(target, None, path, scope, at) for path in paths]
        return paths

    def _for(self, node: ast.For | ast.AsyncFor, paths: Paths, scope: Scope) -> Paths:
        function = self.project.types.function(node.iter, scope) if isinstance(node.iter, ast.Call) else None
        if function is not None and function in self.hot and inner(function, ast.Yield):
            self.give_up()  # the two take turns
        found: Paths = []
        for path, value in self.run(node.iter, paths, scope):
            found += self._turns(node, path, scope, partial(self._loop_target, node.target, value, scope))
        return found

    def _loop_target(self, target: ast.expr, source: Value, scope: Scope, path: State, turn: int) -> State:
        """Bind a loop variable: another object in each turn, the same one where the same list is walked again."""
        if isinstance(target, ast.Tuple | ast.List):
            for index, part in enumerate(target.elts):
                path = self.bound(part, Value(f"{source.key}[{turn}][{index}]"), path, scope, target)
            return path
        return self.bound(target, Value(f"{source.key}[{turn}]"), path, scope, target)

    def _while(self, node: ast.While, paths: Paths, scope: Scope) -> Paths:
        """Walk a loop in two turns, or in one where it only tries again."""
        marked = not isinstance(node.body[-1], ast.Return | ast.Break | ast.Raise)
        run = (self._turns(node, path, scope, lambda each, _turn: each, marked=marked) for path in paths)
        return [each for after in run for each in after]

    def _turns(self, node: Loop, path: State, scope: Scope, bind: Turn, *, marked: bool = True) -> Paths:
        """Walk the turns of a loop, each with a mark, and leave it; a loop without marks has one turn."""
        outer, guards = path.turns, path.guards
        begins, turns, ends = ([mark] if marked else [] for mark in self.marks(node, scope))
        going, left = [path.happens(*begins)], Paths()
        for turn in range(1, 1 + (TURNS if marked else 1)):
            going = [bind(each.but(turns=f"{outer}/{node.lineno}.{turn}").happens(*turns), turn) for each in going]
            if isinstance(node, ast.While) and node.test in self.hot:
                going = [each for each, _ in self.run(node.test, going, scope)]
            after = self.joined(self.block(node.body, going, scope))
            left += [each for each in after if each.ended in {"break", "return", "raise"}]
            going = [each.but(ended="") for each in after if each.ended in {"", "continue"}]
        going = self.block(node.orelse, going, scope) if node.orelse else going
        result = []
        for each in (*left, *going):
            ended = "" if each.ended == "break" else each.ended
            done = each if ended else each.happens(*ends).without_idle_loop(path.words)
            result.append(done.but(ended=ended, turns=outer, guards=guards))
        return result

    def _with(self, node: ast.With | ast.AsyncWith, items: list[ast.withitem], paths: Paths, scope: Scope) -> Paths:
        if not items:
            return self.block(node.body, paths, scope)
        item, rest = items[0], items[1:]

        def bind(path: State, value: Value) -> State:
            return self.bound(item.optional_vars, value, path, scope, node)

        found: Paths = []
        for path, value in self.run(item.context_expr, paths, scope):
            within = partial(self._with, node, rest, scope=scope)
            found += self.context(value, item.context_expr, bind(path, value), scope, within, bind)
        return found

    def _try(self, node: ast.Try | ast.TryStar, paths: Paths, scope: Scope) -> Paths:
        self.tries += bool(node.handlers)
        body = self.block(node.body, paths, scope)
        self.tries -= bool(node.handlers)
        done = self.block(node.orelse, [p for p in body if not p.ended], scope) if node.orelse else body
        done = [*done, *(p for p in body if p.ended)] if node.orelse else done
        raised = [p for p in done if p.ended == "raise"]
        found = [p for p in done if p.ended != "raise"] if node.handlers else done
        for handler in node.handlers:
            guard = f"except {text_of(handler.type) if handler.type is not None else ''}"
            begun = [p.but(ended="", guards=(*p.guards, guard)) for p in (raised or paths)]
            if handler.name:
                begun = [p.binds(handler.name, Value(f"{handler.name}@{handler.lineno}")) for p in begun]
            if handler in self.hot or flows(handler.body) or self.hot.matter(handler.body, scope):
                begun = self.block(handler.body, begun, scope)
            elif not raised:
                continue
            found += [p.but(guards=tuple(each for each in p.guards if each != guard)) for p in begun]
        if not node.finalbody:
            return found
        result: Paths = []
        for path in found:
            after = self.block(node.finalbody, [path.but(ended="")], scope)
            result += [p.but(ended=p.ended or path.ended, returned=p.returned or path.returned) for p in after]
        return result


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_told(value: Value) -> bool:
    return isinstance(value.node, ast.Tuple | ast.List) or value.type is not None


def _asked_by(test: ast.expr, place: Place) -> str:
    """Return the text of a condition, and in brackets the comparisons that its variables were made by."""
    behind = (place.through(name) for name in walk(test) if isinstance(name, ast.Name))
    told = [text_of(each[0]) for each in behind if each and any(isinstance(n, ast.Compare) for n in walk(each[0]))]
    return f"{text_of(test)} ({'; '.join(told)})" if told else text_of(test)


def _passed_by(statement: ast.stmt) -> ast.expr | None:
    """Return the condition on which a statement leaves its block, and does nothing else than that otherwise."""
    leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return | ast.Continue | ast.Break)
    return statement.test if isinstance(statement, ast.If) and leaves and not statement.orelse else None
