"""Scalers that are on under the very settings that choose bfloat16 for autocast."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from gates.scan.analyses.precision.keepers import is_of_scaler
from gates.scan.analyses.precision.precision import BRAIN, option, scalers
from gates.scan.analyses.reading.code import class_of, constant
from gates.scan.analyses.settings.guards import guards_of, held, met
from gates.scan.analyses.settings.outcomes import Outcomes
from gates.scan.analyses.settings.worlds import Atom, Known, Truths, World, few_truths
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

Made = tuple[ast.Call, Scope]
Is = Callable[[ast.Call, Scope], bool]
MAX_PAIRS = 40
ASKS = re.compile(r"(?i)16|half|dtype|precision|scal|amp|mixed")  # a condition that may tell one type from another
NAMES = frozenset({"bfloat16", "bf16", "torch.bfloat16", "bf16-mixed"})
HELD = re.compile(r"(?i)\b(?!use|need|with|enable|has|is|want|do)\w*scaler\b")  # a scaler itself


def scaled_for_all(project: Project, is_on: Is, contexts: Iterable[Made]) -> Iterator[tuple[ast.Call, Module]]:
    """Yield each scaler that is on where some context is in bfloat16, which a setting chooses among other types."""
    pairs = 0
    for module in project.modules.values():
        for call, scope in scalers(project, module):
            if any(k.arg is None for k in call.keywords) and (not is_on(call, scope) or _is_set_in(call, scope)):
                continue
            for context in contexts:
                if not _is_near(context, call, scope) or pairs > MAX_PAIRS:
                    continue
                pairs += 1
                if _is_scaled(project, context, (call, scope)):
                    yield call, module
                    break


def _is_scaled(project: Project, context: Made, scaler: Made) -> bool:
    """Return whether a scaler is on, and used, in a world in which a context is in bfloat16."""
    ask = Outcomes(project)
    always = all(truth is True for truth, _ in _on(ask, *scaler, World()))
    if always and not _is_beside(context, *scaler):
        return False
    worlds = [
        where
        for truth, where in _in_brain(ask, *context, is_open=not always and project.once(_speaks_of_brain)[0])
        if truth is True
    ]
    chosen = [where for where in worlds if where.settled or where.picks or where.ruled_out]
    scaled = [all(truth is True for truth, _ in _on(ask, *scaler, where) or [(None, where)]) for where in chosen]
    off = [where for where, is_on in zip(chosen, scaled, strict=True) if not is_on]
    for where, is_on in zip(chosen, scaled, strict=True):
        needed = is_on and not any(where.turns_on_more(other) for other in off)
        if needed and _is_used(ask, context, scaler, where):
            return not ask.cut
    return False


def _speaks_of_brain(project: Project) -> Iterator[bool]:
    """Yield whether a program names bfloat16 anywhere, so that whoever runs it may choose that."""
    texts = (n for m in project.modules.values() for n in m.live.get(ast.Constant, ()) if isinstance(n, ast.Constant))
    yield "bfloat16" in project.words or any(n.value in NAMES for n in texts)


def _in_brain(ask: Outcomes, call: ast.Call, scope: Scope, *, is_open: bool) -> Truths:
    """Return whether a context is on and in bfloat16, with the worlds in which it is.

    A type that nothing in the program chooses among others may be bfloat16 where it `is_open` to those who run it.
    """
    given = option(call, "dtype", scope)
    given = given or (call.args[1] if len(call.args) > 1 and tail_of(call.func) != "partial" else None)
    if given is None:
        return []
    guards = list(guards_of(call, scope.module, leaving=True))
    reached = [where for truth, where in met(ask, guards, scope, World()) if truth is not False]
    enabled = option(call, "enabled", scope)
    if enabled is not None:
        on = [pair for where in reached for pair in ask.truths(enabled, scope, where)]
        reached = [where for truth, where in on if truth is not False]
    found: Truths = []
    for value, where in (pair for world in reached for pair in ask.values(given, scope, world)):
        if isinstance(value, Known):
            found.append((value.value == BRAIN, where))
        elif is_open and isinstance(value, Atom) and where.is_same(value, BRAIN) is not False:
            found.append((True, where.where(value, BRAIN)))
    return few_truths(found)


def _on(ask: Outcomes, call: ast.Call, scope: Scope, world: World) -> Truths:
    """Return whether a scaler is made, and is on."""
    found = _run(ask, call, scope, world)
    enabled = option(call, "enabled", scope)
    if enabled is None:
        return found
    ended = [pair for pair in found if pair[0] is not True]
    return few_truths([*ended, *(p for t, where in found if t for p in ask.truths(enabled, scope, where))])


def _run(ask: Outcomes, call: ast.Call, scope: Scope, world: World) -> Truths:
    """Return whether a call is run, where whatever has nothing to do with types of numbers lets it."""
    open_: Truths = [(True, world)]
    ended: Truths = []
    for guard in reversed(list(guards_of(call, scope.module, leaving=True))):
        is_other = isinstance(guard.test, ast.expr) and ASKS.search(HELD.sub("", text_of(guard.test))) is None
        following: Truths = []
        for before, where in open_:
            found = held(ask, guard, scope, where)
            passed = [(True, there) for truth, there in found if truth is not False]
            if guard.fails or (is_other and passed):
                following += [(before, there) for _, there in passed]
                continue
            ended += [pair for pair in found if pair[0] is False]
            following += [(truth and before, there) for truth, there in found if truth is not False]
        open_ = few_truths(following)
    return few_truths([*open_, *ended])


def _is_used(ask: Outcomes, context: Made, scaler: Made, world: World) -> bool:
    """Return whether what scales losses in these files runs, and no condition that is not known may keep it off."""
    modules = {scope.module.path: scope.module for scope in (context[1], scaler[1])}
    found: list[bool] = []
    for module in modules.values():
        for call in module.calls.get("scale", ()):
            scope = ask.project.scope_at(call, module)
            if not is_of_scaler(call, scope):
                continue
            truths = _run(ask, call, scope, world)
            found.append(bool(truths) and all(truth is True for truth, _ in truths))
    return all(found)


def _is_near(context: Made, call: ast.Call, scope: Scope) -> bool:
    """Return whether a context and a scaler belong to one file, or one's file imports the other's."""
    there, here = context[1].module, scope.module
    if there is here or _is_beside(context, call, scope):
        return True
    names = (here.name, there.name)
    return any(
        any(dotted == name or dotted.startswith(f"{name}.") for dotted in module.aliases.values())
        for module, name in ((there, names[0]), (here, names[1]))
    )


def _is_beside(context: Made, call: ast.Call, scope: Scope) -> bool:
    """Return whether a context and a scaler belong to one function, or to one class."""
    owner = class_of(call, scope.module)
    where = context[1]
    is_one = where.function is scope.function and where.module is scope.module
    return is_one or (owner is not None and class_of(context[0], where.module) is owner)


def _is_set_in(call: ast.Call, scope: Scope) -> bool:
    """Return whether options that a scaler is handed whole are told if it is on: `options["enabled"] = ...`."""
    rest = {text_of(k.value) for k in call.keywords if k.arg is None}
    body = scope.function or scope.module.tree
    stored = [t for n in inner(body, ast.Assign) if isinstance(n, ast.Assign) for t in n.targets]
    return any(
        isinstance(t, ast.Subscript) and text_of(t.value) in rest and constant(t.slice) == "enabled" for t in stored
    )
