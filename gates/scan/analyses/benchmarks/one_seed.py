"""One seed for several arms: set before all of them, or for one alone, so that the others draw other numbers."""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from gates.scan.analyses.benchmarks.arms import are_arms, is_arm, made_by, over_arms
from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.reading.code import (
    broken,
    callee,
    calls,
    function_of,
    functions,
    keyword,
    statement_of,
    tail_text,
)
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

DEPTH = 4
MAX_CALLS = 5
SEEDED = re.compile(r"(?i)seed")
WEIGHTS = frozenset({"Linear", "Embedding", "LSTM", "GRU", "TransformerEncoderLayer", "Transformer"})
RANDOM = frozenset(
    {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal", "bernoulli", "multinomial"}
)
SAME = frozenset({"load_state_dict", "deepcopy", "set_rng_state", "set_rng_state_all", "fork_rng"})
OWN = frozenset({"Generator", "default_rng"})
CLOCKS = frozenset({"perf_counter", "perf_counter_ns", "monotonic", "Event", "elapsed_time", "max_memory_allocated"})
RESULT = re.compile(r"(?i)loss|acc|perplex|metric|score|error|grad|quality")
Arms = tuple[ast.AST, list[ast.AST]]


@dataclass
class Reached:
    """What code comes to, itself and in the functions of the program that it calls."""

    seeds: bool = False
    draws: bool = False
    weighs: bool = False
    own: bool = False
    keeps: bool = False
    times: bool = False
    tells: bool = False
    seen: set[ast.AST] = field(default_factory=set)

    @property
    def is_unseeded(self) -> bool:
        """Return whether numbers are drawn that nothing sets, and something else than times is told of them."""
        draws = self.weighs or (self.draws and not self.own)  # weights are drawn from no generator of one's own
        return draws and not self.seeds and not self.keeps and (self.tells or not self.times)


def one_seed(project: Project, module: Module) -> Iterator[Site]:
    """Yield each seed that one arm of several starts from."""
    for body in (module.tree, *functions(module)):
        yield from _before_all(project, module, body)
    yield from _in_one_turn(project, module)
    yield from _in_one_function(project, module)


def _before_all(project: Project, module: Module, body: ast.AST) -> Iterator[Site]:
    """Find a seed that is set once before the arms of a comparison, each of which draws on."""
    seeds = [call for call in calls(body) if _sets(project, module, call, DEPTH - 2)]
    others = list(_set_outside(project, module, body)) if not seeds else []
    for around, parts in _arms(project, module, body) if seeds or others else ():
        before = [c for c in seeds if c.lineno < getattr(around, "lineno", 0) and not _is_within(c, around, module)]
        if not (before or others) or any(_sets(project, module, c, DEPTH - 2) for p in parts for c in _calls_in(p)):
            continue
        last = max((b.lineno for b in before), default=0)
        between = any(last < c.lineno <= getattr(parts[-1], "lineno", 0) for c in seeds)
        reached = Reached()
        for part in parts:
            _reach(project, module, part, reached, DEPTH)
        is_pair = isinstance(around, ast.Call)
        if reached.is_unseeded and not between and (not is_pair or _is_told(reached, parts, module)):
            there, seed = others[0] if not before else (module, max(before, key=lambda c: c.lineno))
            said = f"{text_of(seed)}: the second arm goes on from where the first one left the numbers"
            yield broken(there, seed, said, *([("arms", module, around)] if not before else ()))
            return


def _is_told(reached: Reached, parts: list[ast.AST], module: Module) -> bool:
    """Return whether two calls give results, and do not only make things."""
    kept = [statement_of(part, module) for part in parts]
    named = [tail_text(target) for n in kept if isinstance(n, ast.Assign) for target in n.targets]
    return reached.tells or any(RESULT.search(name) for name in named)


def _set_outside(project: Project, module: Module, body: ast.AST) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the seeds that are set when an object is made, or by callers, before a function compares arms."""
    if not isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    owner = project.scope_of(body, module).owner
    made = owner.methods.get("__init__") if owner is not None else None
    if made is not None and made is not body:
        yield from ((module, c) for c in calls(made) if _sets(project, module, c, DEPTH - 2))
    for call, there in project.named.get(body.name, [])[:MAX_CALLS]:
        around = function_of(call, there) or there.tree
        set_there = [c for c in calls(around) if c.lineno < call.lineno and _sets(project, there, c, DEPTH - 2)]
        if set_there and around is not body and callee(project, there, call) is body:
            yield there, max(set_there, key=lambda c: c.lineno)


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
        run = callee(project, module, call) or made_by(project, module, call)
        if run is not None:
            runs[_run(call, run)].append(call)
    for first, second in (pair for found in runs.values() for pair in itertools.pairwise(found)):
        names = tail_of(first.func), tail_of(second.func)
        if is_arm(project, module, first, second) if names[0] == names[1] else are_arms(*names):
            yield first, [first, second]


def _run(call: ast.Call, function: Function | None) -> str:
    """Return what calls that are one arm each have in common: what they run, or its name without the arm's."""
    named = function is not None and (is_baseline(function.name) or is_candidate(function.name))
    return _rest(tail_of(call.func)) if named else text_of(call.func)


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
            if mine.is_unseeded and theirs.seeds and (theirs.draws or theirs.weighs):
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
        is_own = keyword(call, "generator") is not None
        found.keeps = found.keeps or tail in SAME or (is_own and tail.endswith("_"))
        found.own = found.own or is_own or tail in OWN
        found.times = found.times or tail in CLOCKS
        found.seeds = found.seeds or (SEEDED.search(tail) is not None and not _is_of_generator(call))
        is_model = named in project.classes and project.types.is_a(named, MODULE) is True
        is_layer = named.startswith("torch.nn.") and not named.startswith("torch.nn.functional.") and tail[:1].isupper()
        found.weighs = found.weighs or is_model or (is_layer and (tail in WEIGHTS or "Conv" in tail))
        found.draws = found.draws or (named.startswith("torch.") and tail in RANDOM)
        target = (callee(project, module, call) or made_by(project, module, call)) if depth else None
        if target is not None and target not in found.seen:
            found.seen.add(target)
            _reach(project, project.scope_of(target, module).module, target, found, depth - 1)


def _is_of_generator(call: ast.Call) -> bool:
    """Return whether a seed is that of a generator, which is made there: `torch.Generator().manual_seed(0)`."""
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)


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
