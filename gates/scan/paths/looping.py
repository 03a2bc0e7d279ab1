"""The part of a walk that goes through loops: turn by turn, and in turns with a generator of the program."""

import ast
from collections.abc import Callable, Iterable

from gates.scan.paths.contexts import Paths
from gates.scan.paths.running import Running
from gates.scan.paths.state import Event, State, Value
from gates.scan.program.nodes import inner
from gates.scan.program.scope import Scope

TURNS = 2


class Looping(Running):
    """Walks loops; what stands in them is left to the walk."""

    bound: Callable[[ast.expr, Value | None, State, Scope, ast.AST], State]
    forgotten: Callable[[Iterable[ast.stmt], Paths, Scope, ast.AST], Paths]

    def for_loop(self, node: ast.For | ast.AsyncFor, paths: Paths, scope: Scope) -> Paths:
        """Walk a loop over something, in two turns."""
        if node not in self.hot:
            return self.forgotten([node], paths, scope, node)
        function = self.project.types.function(node.iter, scope) if isinstance(node.iter, ast.Call) else None
        if function is not None and function in self.hot and inner(function, ast.Yield):
            self.give_up()  # the two take turns
        found: Paths = []
        for path, value in self.run(node.iter, paths, scope):

            def bind(each: State, turn: int, value: Value = value) -> State:
                return self._loop_target(node.target, value, turn, each, scope)

            found += self._turns(node, path, scope, TURNS, bind)
        return found

    def _loop_target(self, target: ast.expr, source: Value, turn: int, path: State, scope: Scope) -> State:
        """Bind a loop variable: another object in each turn, the same one where the same list is walked again."""
        if isinstance(target, ast.Tuple | ast.List):
            for index, part in enumerate(target.elts):
                path = self.bound(part, Value(f"{source.key}[{turn}][{index}]"), path, scope, target)
            return path
        return self.bound(target, Value(f"{source.key}[{turn}]"), path, scope, target)

    def while_loop(self, node: ast.While, paths: Paths, scope: Scope) -> Paths:
        """Walk a loop that goes on while a condition holds: two turns; one of a loop that only tries again."""
        if node not in self.hot:
            return self.forgotten([node], paths, scope, node)
        once = isinstance(node.body[-1], ast.Return | ast.Break | ast.Raise)
        count = 1 if once else TURNS
        run = (self._turns(node, path, scope, count, lambda each, _turn: each, marked=not once) for path in paths)
        return [each for after in run for each in after]

    def _turns(
        self,
        node: ast.For | ast.AsyncFor | ast.While,
        path: State,
        scope: Scope,
        count: int,
        bind: Callable[[State, int], State],
        *,
        marked: bool = True,
    ) -> Paths:
        """Walk the turns of a loop, with a mark where each begins, and leave it."""
        outer, guards = path.turns, path.guards
        begins, turns, ends = ((self.marker(m, node, scope),) if marked else () for m in ("loop", "turn", "done"))
        going = [path.happens(*begins)]
        left: Paths = []
        for turn in range(1, count + 1):
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

    def marker(self, name: str, node: ast.AST, scope: Scope) -> Event:
        """Return a mark between events."""
        line = getattr(node, "lineno", 1)
        return Event(name, (), scope.module.path, line, line)
