"""Arms of a comparison that start from different random numbers."""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses._benching import is_baseline, is_candidate
from gates.scan.analyses._code import broken, callee, calls, keyword, loop_of, tail_text
from gates.scan.module import Module, tail_of
from gates.scan.nodes import text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site
from gates.scan.types import argument

WORDS = ("seed",)
SEEDING = re.compile(r"(?i)seed")
DATA = re.compile(r"(?i)worker|spawn|generate_state")
ARM = re.compile(r"(?i)(^|_)(arms?|precision|dtype|amp|use_amp|variant|backend)(_|$)")
SEEDS = {"manual_seed", "seed_everything", "set_seed", "manual_seed_all"}


def look(project: Project) -> Iterator[Site]:
    """Yield the second of two arms that gets another seed than the first."""
    for module in project.modules.values():
        for body in (module.tree, *module.live.get(ast.FunctionDef, [])):
            yield from _by_keyword(project, module, body)
            yield from _by_statement(module, body)
        yield from _by_turn(project, module)


def _by_keyword(project: Project, module: Module, body: ast.AST) -> Iterator[Site]:
    """Find two calls of one function that differ in their seed and in something else."""
    arms: dict[str, list[ast.Call]] = defaultdict(list)
    for call in sorted(calls(body), key=lambda c: c.lineno):
        if _given(project, module, call) is not None:
            arms[text_of(call.func)].append(call)
    for found in arms.values():
        for first, second in itertools.pairwise(found):
            seeds = [_given(project, module, call) for call in (first, second)]
            one, other = (text_of(seed) if seed is not None else "" for seed in seeds)
            if one != other and _rest(first, seeds[0]) != _rest(second, seeds[1]) and _is_arm(first, second, module):
                yield broken(module, second, f"one arm has the seed {one}, the other {other}")


def _by_turn(project: Project, module: Module) -> Iterator[Site]:
    """Find a seed that depends on which arm's turn it is, in a loop over the arms."""
    for name, found in module.calls.items():
        for call in found if SEEDING.search(name) and not DATA.search(name) else ():
            loop = loop_of(call, module)
            if not isinstance(loop, ast.For) or not call.args:
                continue
            turn = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
            used = {n.id for arg in call.args for n in walk(arg) if isinstance(n, ast.Name)}
            if turn & used and _over_arms(project, module, loop, turn & used):
                yield broken(module, call, f"{text_of(call)}: each arm has a seed of its own")


def _over_arms(project: Project, module: Module, loop: ast.For, seeds: set[str]) -> bool:
    """Return whether a loop goes over the arms of a comparison: by their names, or by what its variables are called."""
    named = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)} - seeds
    if any(ARM.search(name) for name in named):
        return True
    scope = project.scope_at(loop, module)
    texts: set[str] = set()
    for part in walk(loop.iter):
        behind = scope.through(part) if isinstance(part, ast.Name | ast.Attribute) else None
        for node in walk(behind[0] if behind else part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.Attribute):
                texts.add(node.attr)
    return any(map(is_baseline, texts)) and any(map(is_candidate, texts))


def _given(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the seed that a call passes, by its name or at its place."""
    named = keyword(call, "seed")
    target = callee(project, module, call) if named is None and call.args else None
    if target is None:
        return named
    return argument(call, target, "seed", bound=project.scope_of(target, module).owner is not None)


def _rest(call: ast.Call, seed: ast.expr | None) -> list[str]:
    named = [f"{k.arg}={text_of(k.value)}" for k in call.keywords if k.value is not seed]
    return [*(text_of(arg) for arg in call.args if arg is not seed), *named]


def _is_arm(first: ast.Call, second: ast.Call, module: Module) -> bool:
    """Return whether the results, or the arguments, are called the old and the new arm."""
    one, other = _called(first, module), _called(second, module)
    given = [(_values(first), _values(second)), (one, other)]
    if any((is_baseline(a) and is_candidate(b)) or (is_candidate(a) and is_baseline(b)) for a, b in given):
        return True
    known = {"amp", "use_amp", "precision", "dtype", "fp16", "mixed", "mixed_precision", "compile", "half"}
    differing = {k.arg for k in first.keywords if _text(first, k.arg) != _text(second, k.arg)}
    return bool(differing & known)


def _values(call: ast.Call) -> str:
    """Return the texts that a call passes, and the names of what it passes."""
    return " ".join(str(a.value) if isinstance(a, ast.Constant) else tail_text(a) for a in call.args)


def _text(call: ast.Call, name: str | None) -> str:
    value = keyword(call, name) if name else None
    return text_of(value) if value is not None else ""


def _called(call: ast.Call, module: Module) -> str:
    parent = module.parents.get(call)
    if isinstance(parent, ast.Dict):
        keys = [
            k.value
            for k, v in zip(parent.keys, parent.values, strict=True)
            if v is call and isinstance(k, ast.Constant)
        ]
        return str(keys[0]) if keys else ""
    return tail_text(parent.targets[0]) if isinstance(parent, ast.Assign) else ""


def _by_statement(module: Module, body: ast.AST) -> Iterator[Site]:
    """Find two constant seeds set in one function with an arm made after each."""
    seeded = [c for c in calls(body) if tail_of(c.func) in SEEDS and c.args and isinstance(c.args[0], ast.Constant)]
    seeded.sort(key=lambda c: c.lineno)
    made = [
        (n.lineno, tail_text(n.targets[0]))
        for n in walk(body)
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
    ]
    for first, second in itertools.pairwise(seeded):
        if text_of(first.args[0]) == text_of(second.args[0]):
            continue
        before = [text for line, text in made if first.lineno < line < second.lineno]
        after = [text for line, text in made if line > second.lineno]
        if (any(map(is_baseline, before)) and any(map(is_candidate, after))) or (
            any(map(is_candidate, before)) and any(map(is_baseline, after))
        ):
            seeds = (text_of(first.args[0]), text_of(second.args[0]))
            yield broken(module, second, f"one arm has the seed {seeds[0]}, the other {seeds[1]}")
