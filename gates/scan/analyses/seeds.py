"""Arms of a comparison that start from different random numbers."""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.arms import (
    are_arms,
    are_switched,
    bodies,
    called_as,
    is_arm,
    odd_seeds,
    over_arms,
    told_by,
)
from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.benchmarks.drawn_seeds import (
    is_chosen_by_arm,
    is_drawn_for_each,
    left_at,
    never_same,
    shown,
    sown,
)
from gates.scan.analyses.benchmarks.held_to_same import held_to_same
from gates.scan.analyses.benchmarks.one_seed import one_seed
from gates.scan.analyses.benchmarks.unsown import unsown
from gates.scan.analyses.reading.code import (
    FUNCTIONS,
    Comprehension,
    broken,
    callee,
    calls,
    constant,
    nodes,
    tail_text,
)
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("seed*",)
SEEDING = re.compile(r"(?i)seed")
DATA = re.compile(r"(?i)worker|spawn|generate_state")
ARMED = frozenset(
    {"amp", "use_amp", "precision", "dtype", "fp16", "bf16", "mixed", "mixed_precision", "compile", "half"}
)
NAMES = frozenset({"seed", "base_seed", "manual_seed", "random_seed", "rng_seed", "random_state"})
SEEDS = {"manual_seed", "seed_everything", "set_seed", "manual_seed_all"}


def look(project: Project) -> Iterator[Site]:
    """Yield the second of two arms that gets another seed than the first."""
    for module in project.modules.values():
        if not _speaks(project, module):
            continue
        for body in (module.tree, *module.live.get(ast.FunctionDef, [])):
            yield from _by_keyword(project, module, body)
            yield from _by_statement(project, module, body)
        yield from _by_turn(project, module)
        yield from _by_draw(project, module)
        yield from _by_entry(module)
        yield from _by_copy(module)
        yield from _by_function(project, module)
        yield from one_seed(project, module)
        yield from unsown(module)
        yield from held_to_same(module)


def _speaks(project: Project, module: Module) -> bool:
    """Return whether a file sets or passes any seeds."""
    if any(SEEDING.search(name) for name in module.calls) or project.once(_seeded)[0] & module.calls.keys():
        return True
    if any(isinstance(node, ast.keyword) and node.arg in NAMES for node in module.live.get(ast.keyword, ())):
        return True
    return any(isinstance(node, ast.Dict) and _under(node) is not None for node in module.live.get(ast.Dict, ()))


def _by_keyword(project: Project, module: Module, body: ast.AST) -> Iterator[Site]:
    """Find two calls of one function that differ in their seed and in something else."""
    arms: dict[str, list[tuple[ast.Call, ast.expr | None]]] = defaultdict(list)
    for call in sorted(calls(body), key=lambda c: c.lineno):
        seed = _given(project, module, call)
        if seed is not None or (default := _default(project, module, call)) is None:
            arms[text_of(call.func)] += [(call, seed)] if seed is not None else []
        else:
            arms[text_of(call.func)].append((call, default))
    for found in arms.values():
        rest = [str(_rest(c, s)) for c, s in found]
        told = [
            (
                c,
                text if len(set(rest)) > 1 else called_as(c, module),
                shown(project, module, s) if s is not None else "",
            )
            for (c, s), text in zip(found, rest, strict=True)
        ]
        for arm, seed_, other in odd_seeds(told, lambda one, two: is_arm(project, module, one, two)):
            yield broken(module, arm, f"one arm has the seed {other}, the other {seed_}")


def _default(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the seed that a call leaves as it is: the default of its function, or that of the settings it copies."""
    if tail_of(call.func) == "dict" and call.args:
        behind = project.scope_at(call, module).through(call.args[0])
        return _under(behind[0]) if behind is not None and isinstance(behind[0], ast.Dict) else None
    made = call.args[0] if tail_of(call.func) == "partial" and call.args else call.func
    if tail_of(made) not in project.once(_seeded)[0] or any(k.arg is None for k in call.keywords):
        return None
    found = left_at(project, module, call)
    return found if found is not None and shown(project, module, found).lstrip("-").isdigit() else None


def _by_turn(project: Project, module: Module) -> Iterator[Site]:
    """Find a seed that depends on which arm's turn it is, in a loop over the arms."""
    for place, seed in _seeds(project, module):
        for loop, turn, iterated in _turns(seed, module):
            free = {n.id for n in _free(seed) if isinstance(n, ast.Name)}
            used = turn & (free | _set_by_turn(loop, free, turn))
            if used and not _is_crossed(iterated, seed, used) and over_arms(project, module, iterated, turn - used):
                yield broken(module, place, f"{text_of(seed)}: each arm has a seed of its own")
                break


def _by_draw(project: Project, module: Module) -> Iterator[Site]:
    """Find a seed that is drawn anew for each arm, or reckoned of it."""
    for place, seed in _seeds(project, module):
        if is_chosen_by_arm(seed) or is_drawn_for_each(project, module, seed):
            yield broken(module, place, f"{text_of(seed)}: each arm has a seed of its own")


def _by_copy(module: Module) -> Iterator[Site]:
    """Find a copy of an arm's settings that turns its precision, and its seed: `replace(plain, amp=True, seed=7)`."""
    for call in module.calls.get("replace", ()):
        given = {k.arg: k.value for k in call.keywords if k.arg is not None}
        seed = next((value for name, value in given.items() if name in NAMES), None)
        if seed is None or not call.args or not ARMED & given.keys():
            continue
        own = text_of(call.args[0])
        fields = {text_of(n) for n in walk(seed) if isinstance(n, ast.Attribute)}
        if isinstance(seed, ast.BinOp) and any(field.startswith(f"{own}.") for field in fields):
            yield broken(module, seed, f"{text_of(seed)}: each arm has a seed of its own")


def _seeds(project: Project, module: Module) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the seeds that calls, dictionaries and attributes are given, and where."""
    for call in (call for name, found in module.calls.items() if not DATA.search(name) for call in found):
        if SEEDING.search(tail_of(call.func)) and call.args:
            yield call, call.args[0]
        elif (seed := _given(project, module, call)) is not None:
            yield seed, seed
    for node in nodes(module, ast.Dict, ast.Assign):
        if isinstance(node, ast.Dict):
            seed = _under(node)
            yield from ((seed, seed),) if seed is not None else ()
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
            last = tail_text(node.targets[0]).rpartition(" ")[2]
            yield from ((node, node.value),) if last in NAMES else ()


def _under(node: ast.Dict) -> ast.expr | None:
    """Return what a dictionary that is written out has for a seed."""
    keyed = zip(node.keys, node.values, strict=True)
    return next((value for key, value in keyed if isinstance(key, ast.Constant) and key.value in NAMES), None)


def _turns(node: ast.AST, module: Module) -> Iterator[tuple[ast.AST, set[str], ast.expr]]:
    """Yield the loops and comprehensions around a node: each with its variables, and what it goes over."""
    for around in module.ancestors(node):
        if isinstance(around, ast.For):
            yield around, _names(around.target), around.iter
        elif isinstance(around, Comprehension):
            for each in around.generators:
                yield around, _names(each.target), each.iter
        elif isinstance(around, FUNCTIONS):
            return


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _free(seed: ast.expr) -> Iterator[ast.AST]:
    """Yield the parts of a seed but for the fields of things: `arm.seed` may be the same for every arm."""
    todo: list[ast.AST] = [seed]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            todo += [node.func.value, *node.args, *(k.value for k in node.keywords)]
        elif not (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.value, ast.Name)):
            yield node
            todo += ast.iter_child_nodes(node)


def _set_by_turn(loop: ast.AST, names: set[str], turn: set[str]) -> set[str]:
    """Return the variables of a loop that a seed is computed of within its body, or that count its turns."""
    found: set[str] = set()
    for node in inner(loop, ast.Assign, ast.AugAssign):
        if isinstance(node, ast.Assign) and any(_names(target) & names for target in node.targets):
            found |= {n.id for n in _free(node.value) if isinstance(n, ast.Name)} & turn
        elif isinstance(node, ast.AugAssign) and _names(node.target) & names and isinstance(loop, ast.For):
            found |= turn if any(node is part for part in loop.body) else set()
    return found


def _is_crossed(iterated: ast.expr, seed: ast.expr, used: set[str]) -> bool:
    """Return whether each arm meets each seed: `for arm, seed in product(arms, seeds)`."""
    crossed = any(isinstance(c, ast.Call) and tail_of(c.func) == "product" for c in walk(iterated))
    return crossed and isinstance(seed, ast.Name) and seed.id in used


def _seeded(project: Project) -> Iterator[frozenset[str]]:
    """Yield the names of all functions and classes of the program that take a seed, or have one for a field."""
    found: set[str] = set()
    for name, (function, _) in project.functions.items():
        if sown(function) is not None:
            found |= {function.name, name.split(".")[-2] if function.name == "__init__" else function.name}
    for info in project.classes.values():
        fields = (n.target for n in info.node.body if isinstance(n, ast.AnnAssign))
        found |= {info.node.name for field in fields if tail_of(field) == "seed"}
    yield frozenset(found)


def _given(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the seed that a call passes, by its name or at its place."""
    named = next((k.value for k in call.keywords if k.arg in NAMES), None)
    if named is not None or not call.args or tail_of(call.func) not in project.once(_seeded)[0]:
        return named
    target = callee(project, module, call)
    if target is not None:
        return argument(call, target, sown(target) or "seed", bound=project.scope_of(target, module).owner is not None)
    if not tail_of(call.func)[:1].isupper():
        return None
    info = project.classes.get(project.types.of(call, project.scope_at(call, module)) or "")
    if info is None:
        return None
    if "__init__" in info.methods:
        return argument(call, info.methods["__init__"], "seed", bound=True)
    fields = [n.target.id for n in info.node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    at = fields.index("seed") if "seed" in fields else len(call.args)
    return call.args[at] if at < len(call.args) else None


def _rest(call: ast.Call, seed: ast.expr | None) -> tuple[str, ...]:
    named = [f"{k.arg}={text_of(k.value)}" for k in call.keywords if k.value is not seed]
    return (*(text_of(arg) for arg in call.args if arg is not seed), *named)


def _by_entry(module: Module) -> Iterator[Site]:
    """Find two entries of a table of arms that differ in their seed."""
    for table in nodes(module, ast.Dict, ast.List, ast.Tuple):
        yield from _without(module, table)
        found = [(told_by(*each), _under(each[1])) for each in _entries(table)]
        told = [((text, seed), text, text_of(seed)) for text, seed in found if seed is not None]
        for (_, arm), seed_, other in odd_seeds(told, lambda one, two: are_arms(one[0], two[0])):
            if isinstance(arm, ast.Constant):
                yield broken(module, arm, f"one arm has the seed {other}, the other {seed_}")


def _without(module: Module, table: ast.AST) -> Iterator[Site]:
    """Find the entry of one arm that has no seed, unlike that of the other."""
    entries = [(key, entry, _under(entry)) for key, entry in _entries(table)]
    if len(entries) == 2 and are_arms(entries[0][0], entries[1][0]) and sum(seed is None for *_, seed in entries) == 1:
        yield from (broken(module, entry, f"the arm {key} has no seed") for key, entry, seed in entries if seed is None)


def _entries(table: ast.AST) -> Iterator[tuple[str, ast.Dict]]:
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(value, ast.Dict):
                yield str(constant(key)), value
    elif isinstance(table, ast.List | ast.Tuple):
        yield from (("", entry) for entry in table.elts if isinstance(entry, ast.Dict))


def _by_function(project: Project, module: Module) -> Iterator[Site]:
    """Find two functions, one for each arm, that set or pass seeds which are never the same."""
    seeded: list[tuple[str, str, ast.expr]] = []
    for owner, name, body in bodies(module):
        found = {text_of(seed): seed for seed in _set_in(project, module, body)}
        if len(found) == 1:
            seeded += [(owner, name, seed) for seed in found.values()]
    for (above, one, first), (owner, other, second) in itertools.pairwise(_of_arms(seeded)):
        told = are_arms(one, other) or (one == other and are_arms(above, owner))
        if told and never_same(project, module, first, second):
            yield broken(module, second, f"one arm has the seed {text_of(first)}, the other {text_of(second)}")


def _set_in(project: Project, module: Module, body: ast.AST) -> Iterator[ast.expr]:
    """Yield the seeds that a function sets, or hands to what sets them."""
    for call in calls(body):
        if tail_of(call.func) in SEEDS and call.args:
            yield call.args[0]
        elif (seed := _given(project, module, call) or _default(project, module, call)) is not None:
            yield seed


def _of_arms(seeded: list[tuple[str, str, ast.expr]]) -> list[tuple[str, str, ast.expr]]:
    """Return the functions that are called as an arm is, or whose class is."""
    return [each for each in seeded if any(is_baseline(name) or is_candidate(name) for name in each[:2])]


def _by_statement(project: Project, module: Module, body: ast.AST) -> Iterator[Site]:
    """Find two seeds set in one function with an arm made after each."""
    seeded = [c for c in calls(body) if tail_of(c.func) in SEEDS and c.args]
    seeded.sort(key=lambda c: c.lineno)
    made = [
        (n.lineno, tail_text(n.targets[0]), n.value)
        for n in walk(body)
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
    ]
    for first, second in itertools.pairwise(seeded):
        if text_of(first.args[0]) == text_of(second.args[0]):
            continue
        before = [(text, call) for line, text, call in made if first.lineno < line < second.lineno]
        after = [(text, call) for line, text, call in made if line > second.lineno]
        pairs = list(itertools.product(before, after))
        called = any(are_arms(one, other) for (one, _), (other, _) in pairs)
        twice = pairs if len(seeded) == 2 else []
        if called or any(are_switched(project, module, one, other) for (_, one), (_, other) in twice):
            seeds = (text_of(first.args[0]), text_of(second.args[0]))
            yield broken(module, second, f"one arm has the seed {seeds[0]}, the other {seeds[1]}")
