"""What a condition says of the end of a window of micro-batches, and where it is written wrong by its own name."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gates.scan.analyses.precision.guards import named
from gates.scan.analyses.reading.code import constant, statement_of
from gates.scan.analyses.training.amounts import amounts, names_of
from gates.scan.program.module import Module
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

GATHERS = re.compile(r"(?i)accum|micro|(^|_)acc(_|$)|grad_acc|virtual_batch")
OF_LOSS = re.compile(r"(?i)loss|backward|\bscale\b|^\w*(weight|factor|scale)\w* =")
GOES_ON = re.compile(
    r"(?i)hold|(^|_)(open|no|not|mid|more|left|rest|within|inside|keeps?|go(es)?)(_|$)|skip|gather|accum|collect|partial|"
    r"wait|pend|defer|delay|postpon|suppress|contin|unfinish|incomplete|running|micro"
)
ENDS = re.compile(r"(?i)bound|(^|_)(ends?|last|full|due|ready|over|done)(_|$)|(?<!in)complete|(?<!un)finish|closed?$")
Place = tuple[ast.AST, Module]


@dataclass(frozen=True)
class Boundary:
    """Whether a condition holds where a window ends, the numbers that may be its size, and the files of these.

    It is `written` where turns are counted, and `wrong` where that is the opposite of what it is called there.
    """

    holds: bool
    sizes: tuple[tuple[ast.expr, Scope], ...]
    modules: tuple[Module, ...]
    written: tuple[Place, ...] = ()
    wrong: Place | None = None

    def turned(self) -> "Boundary":
        """Return what the opposite condition says."""
        return replace(self, holds=not self.holds)

    def by(self, scope: Scope, told: Iterable[ast.expr] = ()) -> "Boundary":
        """Return the same, asked from elsewhere of a function that may be told the size."""
        sizes = (*self.sizes, *((value, scope) for value in told))
        return replace(self, sizes=sizes, modules=(*self.modules, scope.module))

    def called(self, name: str, value: ast.expr, module: Module) -> "Boundary":
        """Return the same by a name that a value is given: what is not called an open window is to be its end."""
        goes_on = GOES_ON.search(name) is not None
        if isinstance(value, ast.BinOp) or (goes_on and ENDS.search(name)):
            return self  # a number, or a name that says neither
        return replace(self, wrong=(self.wrong or (value, module)) if self.holds is goes_on else None)

    @property
    def is_gathering(self) -> bool:
        """Return whether the size is that of an accumulation: it is called so, or losses are divided by it."""
        found = [node for size, scope in self.sizes for node in amounts(scope.project, size, scope)]
        names = names_of(found)
        if any(GATHERS.search(name) for name in names):
            return True
        numbers = {constant(size) for size in found if isinstance(size, ast.Constant)}
        parts = [part for module in self.modules for part in _divided_by(module, self.sizes[0][1].project)]
        return any(named(part) in names or (_is_number(part) and constant(part) in numbers) for part in parts)


def agreed(parts: Iterable[Boundary | None]) -> Boundary | None:
    """Return what several conditions say alike, wrong where all of them are at one place."""
    found = [part for part in parts if part is not None]
    if not found or len({part.holds for part in found}) != 1:
        return None
    written = {place[0]: place for part in found for place in part.written}
    is_one = len({part.wrong[0] if part.wrong else None for part in found}) == 1
    return replace(found[0], written=tuple(written.values()), wrong=found[0].wrong if is_one else None)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _divided_by(module: Module, project: Project) -> Iterator[ast.expr]:
    """Yield what a file divides a loss by, and what is behind a variable that it does so by."""
    for part in _divisors(module):
        yield part
        yield from amounts(project, part, project.scope_at(part, module)) if isinstance(part, ast.Name) else ()


def _divisors(module: Module) -> Iterator[ast.expr]:
    """Yield what a file divides a loss by."""
    for node in (*module.live.get(ast.BinOp, ()), *module.live.get(ast.AugAssign, ())):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div) and _is_of_loss(node, module):
            yield node.right if isinstance(node, ast.BinOp) else node.value
    for name in ("div", "div_"):
        for call in module.calls.get(name, ()):
            yield from call.args[:1] if _is_of_loss(call, module) else ()


def _is_of_loss(node: ast.AST, module: Module) -> bool:
    around = statement_of(node, module)
    return around is not None and OF_LOSS.search(text_of(around)) is not None
