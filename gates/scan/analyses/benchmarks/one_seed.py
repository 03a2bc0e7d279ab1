"""One seed for several arms: set before all of them, or for one alone, so that the others draw other numbers."""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from gates.scan.analyses.benchmarks.arms import is_arm, over_arms
from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.reading.code import broken, callee, calls, functions, keyword
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

DEPTH = 4
SEEDED = re.compile(r"(?i)seed")
WEIGHTS = frozenset({"Linear", "Embedding", "LSTM", "GRU", "TransformerEncoderLayer", "Transformer"})
RANDOM = frozenset(
    {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal", "bernoulli", "multinomial"}
)
SAME = frozenset(
    {"load_state_dict", "deepcopy", "set_rng_state", "set_rng_state_all", "fork_rng", "Generator", "default_rng"}
)
CLOCKS = frozenset({"perf_counter", "perf_counter_ns", "monotonic", "Event", "elapsed_time", "max_memory_allocated"})
RESULT = re.compile(r"(?i)loss|acc|perplex|metric|score|error|grad|quality")
Arms = tuple[ast.AST, list[ast.AST]]


@dataclass
class Reached:
    """What code comes to, itself and in the functions of the program that it calls."""

    seeds: bool = False
    draws: bool = False
    keeps: bool = False
    times: bool = False
    tells: bool = False
    seen: set[ast.AST] = field(default_factory=set)

    @property
    def is_unseeded(self) -> bool:
        """Return whether numbers are drawn that nothing sets, and something else than times is told of them."""
        return self.draws and not self.seeds and not self.keeps and (self.tells or not self.times)


def one_seed(project: Project, module: Module) -> Iterator[Site]:
    """Yield each seed that one arm of several starts from."""
    for body in (module.tree, *functions(module)):
        yield from _before_all(project, module, body)
    yield from _in_one_turn(project, module)
    yield from _in_one_function(project, module)


def _before_all(project: Project, module: Module, body: ast.AST) -> Iterator[Site]:
    """Find a seed that is set once before the arms of a comparison, each of which draws on."""
    seeds = [call for call in calls(body) if _sets(project, module, call, DEPTH - 2)]
    for around, parts in _arms(project, module, body) if seeds else ():
        before = [c for c in seeds if c.lineno < getattr(around, "lineno", 0) and not _is_within(c, around, module)]
        if not before or any(_sets(project, module, c, DEPTH - 2) for part in parts for c in _calls_in(part)):
            continue
        between = [
            c for c in seeds if before and max(b.lineno for b in before) < c.lineno <= getattr(parts[-1], "lineno", 0)
        ]
        reached = Reached()
        for part in parts:
            _reach(project, module, part, reached, DEPTH)
        if reached.is_unseeded and not between:
            seed = max(before, key=lambda c: c.lineno)
            yield broken(
                module, seed, f"{text_of(seed)}: the second arm goes on from where the first one left the numbers"
            )
            return


def _arms(project: Project, module: Module, body: ast.AST) -> Iterator[Arms]:
    """Yield the loops over the arms of a comparison, and the calls of one function for one arm after the other."""
    for loop in inner(body, ast.For):
        if isinstance(loop, ast.For) and over_arms(project, module, loop.iter, _names(loop.target)):
            yield loop, list(loop.body)
    for node in inner(body, ast.ListComp, ast.DictComp, ast.GeneratorExp):
        for each in node.generators:  # type: ignore[attr-defined]  # a comprehension
            if over_arms(project, module, each.iter, _names(each.target)):
                yield node, [node.value if isinstance(node, ast.DictComp) else node.elt]  # type: ignore[attr-defined]
    runs: dict[str, list[ast.Call]] = defaultdict(list)
    for call in sorted(calls(body), key=lambda c: (c.lineno, c.col_offset)):
        if callee(project, module, call) is not None:
            runs[text_of(call.func)].append(call)
    for first, second in (pair for found in runs.values() for pair in itertools.pairwise(found)):
        if is_arm(project, module, first, second):
            yield first, [first, second]


def _in_one_turn(project: Project, module: Module) -> Iterator[Site]:
    """Find a seed that is set in one turn of a loop over the arms."""
    for node in module.live.get(ast.If, ()):
        seeds = (
            [c for part in node.body for c in _calls_in(part) if _sets(project, module, c, 1)]
            if isinstance(node, ast.If)
            else []
        )
        if not seeds or not isinstance(node, ast.If):
            continue
        loop = next((a for a in module.ancestors(node) if isinstance(a, ast.For)), None)
        turn = _names(loop.target) if loop is not None else set()
        other = any(_sets(project, module, c, 1) for part in node.orelse for c in _calls_in(part))
        if loop is None or other or not turn & _names(node.test) or not over_arms(project, module, loop.iter, turn):
            continue
        reached = Reached()
        for part in loop.body:
            if part is not node:
                _reach(project, module, part, reached, DEPTH)
        if reached.is_unseeded:
            yield broken(module, seeds[0], f"{text_of(seeds[0])}: only one arm is seeded")


def _in_one_function(project: Project, module: Module) -> Iterator[Site]:
    """Find two functions, one for each arm, of which only one sets a seed."""
    found = [f for f in functions(module) if is_baseline(f.name) or is_candidate(f.name)]
    for one, other in itertools.combinations(found, 2) if len(found) == 2 else ():
        if is_baseline(one.name) is is_baseline(other.name) or _rest(one.name) != _rest(other.name):
            continue
        both = [Reached(), Reached()]
        for function, reached in zip((one, other), both, strict=True):
            _reach(project, module, function, reached, DEPTH)
        for mine, theirs, function in ((both[0], both[1], one), (both[1], both[0], other)):
            if mine.is_unseeded and theirs.seeds and theirs.draws:
                yield broken(module, function, f"{function.name} sets no seed, unlike the other arm")


def _rest(name: str) -> str:
    """Return what is left of a name without the words for its arm."""
    return "_".join(part for part in name.split("_") if part and not is_baseline(part) and not is_candidate(part))


def _reach(project: Project, module: Module, node: ast.AST, found: Reached, depth: int) -> None:
    """Note what code comes to."""
    returned = [n.value for n in inner(node, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    told = [*returned, *([node] if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else [])]
    found.tells = found.tells or any(RESULT.search(text_of(each)) for each in told)
    for call in _calls_in(node):
        tail, scope = tail_of(call.func), project.scope_at(call, module)
        named = scope.dotted(call.func) or ""
        found.keeps = found.keeps or tail in SAME or keyword(call, "generator") is not None
        found.times = found.times or tail in CLOCKS
        found.seeds = found.seeds or SEEDED.search(tail) is not None
        is_model = named in project.classes and project.types.is_a(named, MODULE) is True
        is_layer = named.startswith("torch.nn.") and not named.startswith("torch.nn.functional.") and tail[:1].isupper()
        weighs = is_layer and (tail in WEIGHTS or "Conv" in tail)
        draws = named.startswith("torch.") and tail in RANDOM
        found.draws = found.draws or is_model or weighs or draws
        target = callee(project, module, call) if depth else None
        if target is not None and target not in found.seen:
            found.seen.add(target)
            _reach(project, project.scope_of(target, module).module, target, found, depth - 1)


def _sets(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call sets the seed of all random numbers, itself or in a helper that does little else."""
    named = project.scope_at(call, module).dotted(call.func) or ""
    if tail_of(call.func) in {"manual_seed", "seed_everything", "set_seed", "manual_seed_all"}:
        of_object = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)
        return not of_object and (not isinstance(call.func, ast.Attribute) or "." in named)
    target: Function | None = callee(project, module, call) if depth else None
    if target is None:
        return False
    there = project.scope_of(target, module).module
    made = list(calls(target))
    return len(made) <= 8 and any(_sets(project, there, c, depth - 1) for c in made) and not _returns(target)


def _returns(function: Function) -> bool:
    return any(isinstance(n, ast.Return) and n.value is not None for n in inner(function, ast.Return))


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    if isinstance(node, ast.Call):
        yield node
    yield from calls(node)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _is_within(node: ast.AST, around: ast.AST, module: Module) -> bool:
    return around in module.ancestors(node)
