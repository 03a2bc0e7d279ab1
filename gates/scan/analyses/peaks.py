"""Peaks of memory that hold what came before."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from gates.scan.analyses.benchmarks.arms import are_switched, over_arms
from gates.scan.analyses.benchmarks.beginnings import begun, is_end_alone, is_repeated
from gates.scan.analyses.benchmarks.benching import is_baseline, is_benchmark, is_called_benchmark, is_candidate
from gates.scan.analyses.benchmarks.gathering import gathered
from gates.scan.analyses.benchmarks.resets import RESETS, is_set_back
from gates.scan.analyses.reading.code import (
    FUNCTIONS,
    Comprehension,
    Told,
    broken,
    callee,
    calls,
    class_of,
    constant,
    function_of,
    nodes,
    statement_of,
    tail_text,
)
from gates.scan.analyses.settings.series import is_series, written_out
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("max_memory_allocated", "max_memory_reserved", "memory_stats")
RUNS = {"run", "Popen", "check_call", "check_output", "call"}
HOPS = 3
MAX_CALLS = 10
STAGE = re.compile(r"(?i)(?<![a-z])(train|val(?!ue)|eval|test|dev(?!ice)|warm)")
PEAK = re.compile(r"(?i)mem|peak|footprint|vram|usage")
REPORT = re.compile(r"(?i)report|summary|summari[sz]e|log(?!it)")
DTYPE = re.compile(r"^(b?float(16|32)?|half)$")


def look(project: Project) -> Iterator[Site]:
    """Yield each reading of the peak in a benchmark that never sets it back, or of arms that run one after another."""
    for module in project.modules.values():
        found = list(_readings(module))
        for call, name in found:
            if not _starts_afresh(project) and _is_compared(project, call, module):
                way = begun(project, module, call)
                yield _told_at(module, call, f"{name}() holds the peak of all that ran before", *way)
            elif (turn := _unset(project, module, call)) is not None:
                arms = [("arms", there, turn) for there in project.modules.values() if turn in there.parents]
                way = [*arms, *begun(project, module, call)]
                yield _told_at(module, call, f"{name}() holds the peak of the arms that ran before", *way)
            elif (function := function_of(call, module)) is not None and not is_set_back(project, function):
                yield from _inherited(project, module, function, call)
        read = [*(call for call, _ in found), *_through(project, module)]
        for call, name in _later(project, module, read):
            yield broken(module, call, f"{name} holds the peak of the arm that ran before")


def _unset(project: Project, module: Module, reading: ast.Call) -> ast.AST | None:
    """Return what runs one arm after the other and never sets the peak back that is read."""
    turns = (*_turns(project, module, reading, HOPS), *gathered(project, module, reading))
    return next((turn for turn in turns if not is_set_back(project, turn)), None)


def _is_compared(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether a peak is read by a benchmark or a probe, rather than told at the end of one long run."""
    function = function_of(call, module)
    is_told = function is not None and _is_told(call, function, module)
    is_benched = is_called_benchmark(call, module)
    if is_told and (not is_benched or (function is not None and REPORT.search(function.name))):
        return False
    is_told_late = is_end_alone(module, call) and not is_benched
    is_own = is_benchmark(call, module) and not is_repeated(module, call) and not is_told_late
    return is_own or _is_probe(project, call, module)


def _is_told(call: ast.Call, function: Function, module: Module) -> bool:
    """Return whether a peak is put into a text, and nothing else is done with it."""
    if any(isinstance(around, ast.FormattedValue) for around in module.ancestors(call)):
        return True
    kept = statement_of(call, module)
    name = text_of(kept.targets[0]) if isinstance(kept, ast.Assign) else ""
    uses = [n for n in inner(function, ast.Name) if isinstance(n, ast.Name) and n.id == name]
    read = [n for n in uses if isinstance(n.ctx, ast.Load)]
    return bool(read) and all(isinstance(module.parents.get(n), ast.FormattedValue) for n in read)


def _starts_afresh(project: Project) -> bool:
    """Return whether a program sets a peak back anywhere, or runs Python anew for each of its arms."""
    return any(name in module.calls for name in RESETS for module in project.modules.values()) or any(
        "sys.executable" in map(text_of, nodes(module, ast.Attribute)) and RUNS & module.calls.keys()
        for module in project.modules.values()
    )


def _inherited(project: Project, module: Module, function: Function, reading: ast.Call) -> Iterator[Site]:
    """Yield the reading that arms share, or the call of the second arm where the peak is set back before the first."""
    name, is_told = tail_of(reading.func), False
    for second, there in _seconds(project, function, HOPS):
        if is_set_back(project, function_of(second, there) or there.tree):
            said = f"{text_of(second.func)}() gives the peak of the arm that ran before, too"
            yield broken(there, second, said, ("it is read in", module, reading))
        elif not is_told:
            at = f"{there.path}:{second.lineno}"
            said = f"{name}() holds the peak of the arm that ran before, too, when {at} runs another"
            yield _told_at(module, reading, said)
            is_told = True


def _told_at(module: Module, reading: ast.Call, said: str, *way: Told) -> Site:
    """Return where a peak is read; a context manager that reads it when it is left is entered in another place."""
    function, owner = function_of(reading, module), class_of(reading, module)
    methods = {each.name: each for each in owner.body if isinstance(each, FUNCTIONS)} if owner is not None else {}
    entering = methods.get("__enter__") if function is not None and function.name == "__exit__" else None
    begun = (("begins", module, entering.body[0]),) if entering is not None and not way else ()
    return broken(module, reading, said, *way, *begun)


def _readings(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Yield what reads a peak, and what that is called."""
    for name in WORDS[:2]:
        yield from ((call, name) for call in module.calls.get(name, []))
    for call in module.calls.get("memory_stats", []):
        parent = module.parents.get(call)
        key = constant(parent.slice) if isinstance(parent, ast.Subscript) else None
        if isinstance(key, str) and key.endswith(".peak"):
            yield call, "memory_stats"


def _turns(project: Project, module: Module, node: ast.AST, hops: int) -> Iterator[ast.AST]:
    """Yield what runs once an arm and reads a peak: the loop over the arms, or the function that is called for each."""
    for around in module.ancestors(node):
        if isinstance(around, ast.For | Comprehension) and _is_over_arms(project, module, around, node):
            yield around
            return
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            if hops:
                yield from _called(project, around, hops)
            return


def _is_over_arms(project: Project, module: Module, loop: ast.AST, node: ast.AST) -> bool:
    each = loop if isinstance(loop, ast.For) else loop.generators[0] if isinstance(loop, Comprehension) else None
    if each is None:
        return False
    named = {n.id for n in walk(each.target) if isinstance(n, ast.Name)}
    if over_arms(project, module, each.iter, named):
        return True
    given = written_out(project, module, each.iter)
    numbers = [constant(e) for e in given]
    kinds = [e for e in given if isinstance(e, ast.Attribute) and DTYPE.search(e.attr)]
    if (kinds and len(numbers) > 1) or {False, True} == {n for n in numbers if isinstance(n, bool)}:
        return isinstance(node, ast.Call)
    sizes = len(numbers) > 1 and all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
    if sizes and isinstance(node, ast.Call) and PEAK.search(tail_of(node.func)) is not None:
        return True
    return isinstance(loop, ast.For) and is_benchmark(node, module) and is_series(module, loop, node)


def _called(project: Project, function: Function, hops: int) -> Iterator[ast.AST]:
    """Yield the turns that a function is called in, and what calls it for one arm after the other."""
    arms: dict[ast.AST, set[str]] = defaultdict(set)
    for call, module in project.named.get(function.name, [])[:MAX_CALLS]:
        target = callee(project, module, call)
        if target is not function and (target is not None or project.method_names[function.name] != 1):
            continue
        arms[function_of(call, module) or module.tree].add(_arm(call, module))
        yield from _turns(project, module, call, hops - 1)
    yield from (around for around, told in arms.items() if {"new", "old"} <= told)


def _seconds(project: Project, function: Function, hops: int) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls of a measurement after another one for another arm, where nothing sets the peak back between."""
    if not _runs_what_it_is_handed(function):
        return
    by_body: dict[ast.AST, list[tuple[ast.Call, Module]]] = defaultdict(list)
    for call, there in project.named.get(function.name, [])[:MAX_CALLS]:
        if callee(project, there, call) is function:
            by_body[function_of(call, there) or there.tree].append((call, there))
    for body, pairs in by_body.items():
        ordered = sorted(pairs, key=lambda pair: (pair[0].lineno, pair[0].col_offset))
        for (first, there), (second, _) in pairwise(ordered):
            if _is_other_arm(project, first, second, there) and not is_set_back(
                project, *_between(body, first, second)
            ):
                yield second, there
        if len(ordered) == 1 and hops and isinstance(body, ast.FunctionDef) and not is_set_back(project, body):
            yield from _seconds(project, body, hops - 1)


def _runs_what_it_is_handed(function: Function) -> bool:
    """Return whether a function does what it measures: it calls, or hands on, what it is handed."""
    args = function.args
    handed = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)} - {"self"}
    return any(
        isinstance(n, ast.Name) and n.id in handed
        for call in calls(function) for part in (call.func, *call.args, *(k.value for k in call.keywords))
        for n in walk(part)
    )  # fmt: skip


def _is_other_arm(project: Project, first: ast.Call, second: ast.Call, module: Module) -> bool:
    """Return whether two calls in one body run one after the other, with other arguments and for other results."""
    told = [_arm(call, module) for call in (first, second)]
    kept = [_target(call, module) for call in (first, second)]
    texts = [{text_of(part) for part in (*call.args, *call.keywords)} for call in (first, second)]
    apart = [
        around for around in module.ancestors(first)
        if isinstance(around, ast.If) and around in set(module.ancestors(second)) and around.orelse
    ]  # fmt: skip
    other = all(kept) and kept[0] != kept[1] and texts[0] != texts[1] and not _are_stages(kept, texts)
    switched = are_switched(project, module, first, second)
    return (switched or other or bool(told[0] and told[1] and told[0] != told[1])) and not any(
        _side(first, a, module) is not _side(second, a, module) for a in apart
    )


def _are_stages(kept: list[str], texts: list[set[str]]) -> bool:
    """Return whether one of two calls trains, and the other evaluates: they are no arms."""
    one, other = (
        {m[0].lower() for m in STAGE.finditer(" ".join((name, *parts)))}
        for name, parts in zip(kept, texts, strict=True)
    )
    return one != other


def _side(node: ast.AST, branch: ast.If, module: Module) -> bool:
    """Return whether a node stands where a condition does not hold."""
    return any(around in branch.orelse for around in (node, *module.ancestors(node)))


def _between(body: ast.AST, first: ast.Call, second: ast.Call) -> list[ast.AST]:
    """Return what is named between two calls, and the second with its arguments."""
    last = first.end_lineno or first.lineno
    found = [n for n in walk(body) if isinstance(n, ast.Name | ast.Attribute) and last < n.lineno < second.lineno]
    return [*found, second]


def _arm(call: ast.Call, module: Module) -> str:
    """Return which arm a call is for, by its arguments and by what its result is called."""
    texts = [str(a.value) if isinstance(a, ast.Constant) else tail_text(a) for a in call.args]
    for option in call.keywords:
        value, name = constant(option.value), option.arg or ""
        off = value is False or (isinstance(option.value, ast.Constant) and value is None)
        texts.append("baseline" if off and is_candidate(name) else name if value is True else str(value or ""))
    parent = module.parents.get(call)
    texts += [tail_text(parent.targets[0])] if isinstance(parent, ast.Assign) else []
    told = {is_candidate(text) for text in texts if is_candidate(text) is not is_baseline(text)}
    return "" if len(told) != 1 else "new" if told.pop() else "old"


def _later(project: Project, module: Module, readings: list[ast.Call]) -> Iterator[tuple[ast.Call, str]]:
    """Yield the second of two readings for two arms in one function, where nothing sets the peak back in between."""
    ordered = sorted(readings, key=lambda call: call.lineno)
    for first, second in pairwise(ordered):
        function = function_of(second, module)
        if function is None or function_of(first, module) is not function:
            continue
        names = [_target(call, module) for call in (first, second)]
        if {(is_candidate(n), is_baseline(n)) for n in names} != {(True, False), (False, True)}:
            continue
        between = [n for n in walk(function) if first.lineno < getattr(n, "lineno", 0) <= second.lineno]
        if not any(is_set_back(project, n) for n in between if isinstance(n, ast.stmt)):
            yield second, names[1].strip()


def _through(project: Project, module: Module) -> Iterator[ast.Call]:
    """Yield the calls of functions that do nothing but read a peak."""
    for function in project.once(_readers)[0]:
        used = [c for c, where in project.named.get(function.name, ())[:MAX_CALLS] if where is module]
        if used and not is_set_back(project, function) and not _runs_what_it_is_handed(function):
            yield from (call for call in used if callee(project, module, call) is function)


def _readers(project: Project) -> Iterator[list[Function]]:
    found: list[Function] = []
    for module in project.modules.values():
        for call, _ in _readings(module):
            function = function_of(call, module)
            if function is not None and any(isinstance(a, ast.Return) for a in module.ancestors(call)):
                found.append(function)
    yield found


def _target(call: ast.Call, module: Module) -> str:
    statement = next((a for a in module.ancestors(call) if isinstance(a, ast.stmt)), None)
    return tail_text(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _is_probe(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether a peak is read at the end of a context that measures what runs in it."""
    function = function_of(call, module)
    if function is None:
        return False
    managed = any("contextmanager" in text_of(d) for d in function.decorator_list)
    named = re.search(r"mem|peak|probe", function.name) is not None
    if named and _runs_what_it_is_handed(function) and len(project.named.get(function.name, ())) > 1:
        return any(isinstance(around, ast.Return) for around in module.ancestors(call))
    return function.name == "__exit__" or (managed and named)
