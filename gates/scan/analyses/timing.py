"""Times of work on a device, read before the device is done."""

import ast
import contextlib
import re
from collections.abc import Callable, Iterator

from gates.scan.analyses.benchmarks.arms import over_arms
from gates.scan.analyses.benchmarks.benching import is_benchmark, is_called_benchmark
from gates.scan.analyses.benchmarks.clocks import clock_names, is_clock
from gates.scan.analyses.benchmarks.events import by_events
from gates.scan.analyses.benchmarks.lopsided import begun_elsewhere, lopsided
from gates.scan.analyses.benchmarks.spans import around_yield, spans
from gates.scan.analyses.benchmarks.timers import Timed, blocks, blocks_of, is_timer_of_device, stretches
from gates.scan.analyses.benchmarks.waiting import origins_of, queued, waits
from gates.scan.analyses.benchmarks.work import CUDA, is_pass, is_work, on_device, reaches_device, works
from gates.scan.analyses.reading.code import broken, calls, class_of, functions, keyword
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.reading.targets import Targets
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = (
    "timeit", "perf_counter", "monotonic", "time.time", "time()", "perf_counter_ns", "monotonic_ns", "datetime",
    "elapsed_time",
)  # fmt: skip
BEGINS = {"__enter__", "start", "begin", "tic", "reset", "restart", "__init__"}
OF_HOST = re.compile(r"(?i)(^|_)(cpu|host)(_|$)")
ENDS = {"__exit__", "stop", "end", "finish", "toc", "elapsed", "lap", "seconds", "pause"}
LIBRARY = ("timeit", "repeat", "Timer")
MESSAGE = "the clock is read while the device may still work"


def look(project: Project) -> Iterator[Site]:
    """Yield each reading of the clock at the end of a timed region that nothing waited in."""
    for module in project.modules.values():
        yield from _by_library(project, module)
        yield from by_events(project, module)
        tails = clock_names(project, module)
        if not tails & module.calls.keys():
            continue
        origins = project.once(origins_of)[0]
        for function in functions(module):
            if OF_HOST.search(function.name) or not any(tail_of(call.func) in tails for call in calls(function)):
                continue
            found = list(_of_function(project, module, function, origins))
            told = {site.line for site in found}
            yield from found
            ends = [*lopsided(project, module, function), *_begun_elsewhere(project, module, function, origins)]
            yield from (broken(module, end, MESSAGE) for end in ends if end.lineno not in told)


def _begun_elsewhere(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[ast.Call]:
    """Yield the end of a time for whose start another method waits, where nothing that is timed waits itself."""
    found, owner = begun_elsewhere(project, module, function), project.scope_of(function, module).owner
    if found is not None and owner is not None:
        used = _timed(project, origins, owner, [(found[1], True)], function.name)
        if not any(_is_waited_for(project, one) for one in used):
            yield found[0]


def _of_function(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[Site]:
    """Yield where a function reads the clock too early, at the end of what it or its class times."""
    is_known = on_device(module) and (
        is_benchmark(function, module) or _is_compared(project, module, function, origins)
    )
    if is_known:
        yield from _regions(project, module, function)
    elif not on_device(module):
        yield from _of_others(project, module, function, origins)
    yield from _since_attribute(project, module, function, origins)
    yield from _around_yield(project, module, function, origins)


def _is_compared(project: Project, module: Module, function: Function, origins: Origins) -> bool:
    """Return whether a function returns nothing but a time, to a benchmark."""
    scope = project.scope_of(function, module)
    given = [n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    is_time = bool(given) and all(
        isinstance(value, ast.BinOp) and any(isinstance(n, ast.Call) and is_clock(n, scope) for n in walk(value))
        for value in given
    )
    return is_time and any(
        is_called_benchmark(call, there) or _is_over_arms(project, call, there)
        for call, there in origins.called(function)
    )


def _is_over_arms(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether a call is made for one arm of a comparison after the other."""
    loops = [a for a in module.ancestors(call) if isinstance(a, ast.For)]
    return any(
        over_arms(project, module, loop.iter, {n.id for n in walk(loop.target) if isinstance(n, ast.Name)})
        for loop in loops
    )


def _by_library(project: Project, module: Module) -> Iterator[Site]:
    """Yield each `timeit.timeit(lambda: model(x))` of work on a device that nothing waits for."""
    for call in (c for tail in LIBRARY for c in module.calls.get(tail, ())):
        scope = project.scope_at(call, module)
        given = keyword(call, "stmt") or (call.args[0] if call.args else None)
        if (scope.dotted(call.func) or "").partition(".")[0] != "timeit" or given is None or not on_device(module):
            continue
        held = list(_timed_by(project, module, given))
        works = any(is_work(project, there, c) for c, there in held) and is_benchmark(call, module)
        if works and not any(waits(project, there, c) for c, there in held):
            yield broken(module, call, "the clock is read while the device still works")


def _timed_by(project: Project, module: Module, given: ast.expr) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls in what `timeit` is handed: a function, a partial call, or code as text."""
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        with contextlib.suppress(SyntaxError, ValueError):
            yield from ((c, module) for c in walk(ast.parse(given.value)) if isinstance(c, ast.Call))
    elif isinstance(given, ast.Lambda):
        yield from ((c, module) for c in walk(given.body) if isinstance(c, ast.Call))
    elif isinstance(given, ast.Call) and tail_of(given.func) == "partial" and given.args:
        yield ast.copy_location(ast.Call(given.args[0], [], []), given), module
        yield from _timed_by(project, module, given.args[0])
    elif isinstance(given, ast.Name | ast.Attribute):
        scope = project.scope_at(given, module)
        for target in Targets(project, project.once(origins_of)[0]).behind(given, scope):
            there = project.scope_of(target, module).module
            yield from ((c, there) for c in walk(target) if isinstance(c, ast.Call))


def _of_callers(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[Site]:
    """Yield where a function times what it is handed, where those who hand it something measure a device."""
    handed = {arg.arg for arg in function.args.args}
    if not any(isinstance(c.func, ast.Name) and c.func.id in handed for c in calls(function)):
        return
    for call, there in origins.called(function):
        if on_device(there) and (is_benchmark(function, module) or is_benchmark(call, there)):
            yield from _regions(project, module, function)
            return


def _of_others(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[Site]:
    """Yield where a function of a file that knows of no device times what works on one in another file."""
    handed = list(_of_callers(project, module, function, origins)) if function.args.args else []
    yield from handed
    if not handed and is_benchmark(function, module):
        yield from _regions(project, module, function, lambda c: reaches_device(project, module, c))


def _regions(
    project: Project, module: Module, function: Function, is_timed: Callable[[ast.Call], bool] = bool
) -> Iterator[Site]:
    """Yield the ends of the timed regions of a function that end too early."""
    told: set[ast.Call] = set()
    for span in spans(function, module, project.scope_of(function, module)):
        work = [c for c in span.calls if works(project, module, c) and is_timed(c)]
        lines = [c.lineno for c in span.calls]
        after = span.calls[lines.index(work[-1].lineno) :] if work else ()
        if not work or _is_off_device(module, span.end):
            continue
        if not any(waits(project, module, c) for c in (*work, *after)):
            told.add(span.end)
            yield broken(module, span.end, f"the clock is read while the device still works ({text_of(work[-1].func)})")
        elif span.begin not in told and (early := queued(project, module, function, span, work)) is not None:
            told.add(span.begin)
            yield broken(
                module, span.begin, f"the clock is started while the device still works ({text_of(early.func)})"
            )


def _is_off_device(module: Module, node: ast.AST) -> bool:
    """Return whether a node stands where there is no device: under `if device.type != "cuda"`, or on the other side."""
    inside = node
    for around in module.ancestors(node):
        if isinstance(around, ast.If) and CUDA.search(text_of(around.test)) and inside is not around.test:
            turned = isinstance(around.test, ast.UnaryOp) or "!=" in text_of(around.test)
            if turned is (inside in around.body):
                return True
        inside = around
    return False


def _around_yield(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[Site]:
    """Find the end of what a generator with one `yield` times, where neither it nor the code in its block waits."""
    for span in around_yield(function, module, project.scope_of(function, module)):
        used = _unwaited(project, list(blocks_of(origins, function)))
        if any(waits(project, module, c) for c in span.calls):
            continue
        if any(_is_measured(project, one) for one in used):
            yield broken(module, span.end, _said(project, used))


def _since_attribute(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[Site]:
    """Find the end of a time that another method began, where nothing waits for the device before it."""
    scope = project.scope_of(function, module)
    owner = class_of(function, module)
    methods = [n for n in walk(owner) if n is not function] if owner is not None else []
    for node in inner(function, ast.BinOp) if methods else ():
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Attribute)):
            continue
        end = node.left if isinstance(node.left, ast.Call) and is_clock(node.left, scope) else None
        begins = [found for m in methods if (found := _begins(m, node.right.attr, project, module)) is not None]
        if end is None or not begins or scope.owner is None:
            continue
        if any(waits(project, module, c) for c in calls(function) if c.lineno <= end.lineno):
            continue
        used = list(_timed(project, origins, scope.owner, begins, function.name))
        if used and not (used := _unwaited(project, used)):
            continue
        is_timer = function.name in ENDS and any(is_sure and m.name in BEGINS for m, is_sure in begins)
        is_meant = is_timer_of_device(scope.owner.node)
        if is_timer or any(_is_measured(project, one, is_meant=is_meant) for one in used):
            yield broken(module, end, _said(project, used))


def _timed(
    project: Project, origins: Origins, owner: ClassInfo, begins: list[tuple[Function, bool]], end: str
) -> Iterator[Timed]:
    """Yield what is timed by a class: by it and by those that extend it."""
    for each in (owner, *project.extending.get(owner.name, ())):
        if end == "__exit__":
            yield from blocks(project, origins, each)
        else:
            for method, _ in begins:
                yield from stretches(project, origins, each, method.name, end)


def _unwaited(project: Project, used: list[Timed]) -> list[Timed]:
    """Return what is timed that nothing waits for: none beside what waits on purpose, passes beside what happens to."""
    idle = [one for one in used if not _is_waited_for(project, one)]
    if len(idle) == len(used):
        return idle
    if any("synchronize" in tail_of(c.func) for one in used for c in one.calls):
        return []
    return [one for one in idle if any(is_pass(project, one.module, c) for c in one.calls)]


def _is_waited_for(project: Project, timed: Timed) -> bool:
    """Return whether the code that a timer is around waits for the device itself, at its end."""
    work = _work_of(project, timed)
    return any(
        waits(project, timed.module, c) for c in timed.calls if not work or c.lineno >= work[-1].lineno or c in work
    )


def _said(project: Project, used: list[Timed]) -> str:
    """Return what is said of a timer: of the work that it is around where that stands, if it is known."""
    working = [one for one in used if _work_of(project, one)]
    places = [one.place for one in sorted(working, key=lambda one: _is_measured(project, one), reverse=True)]
    return f"{MESSAGE} (around {places[0]})" if places else MESSAGE


def _is_measured(project: Project, timed: Timed, *, is_meant: bool = False) -> bool:
    """Return whether work on a device is timed, by a benchmark, or a pass of a model by what is meant for a device."""
    if not is_benchmark(timed.node, timed.module):
        return is_meant and any(is_pass(project, timed.module, c) for c in timed.calls) and on_device(timed.module)
    known = on_device(timed.module)
    return any(known or reaches_device(project, timed.module, c) for c in _work_of(project, timed))


def _work_of(project: Project, timed: Timed) -> list[ast.Call]:
    """Return the calls of what is timed that are work, by their name or by what they run."""
    module = timed.module
    return [c for c in timed.calls if is_work(project, module, c) or reaches_device(project, module, c)]


def _begins(method: ast.AST, name: str, project: Project, module: Module) -> tuple[Function, bool] | None:
    """Return a method that keeps the time in an attribute, and whether it waits for the device before."""
    if not isinstance(method, ast.FunctionDef):
        return None
    scope = project.scope_of(method, module)
    sets = [n for n in inner(method, ast.Assign) if isinstance(n, ast.Assign) and tail_of(n.targets[0]) == name]
    clocked = [n for n in sets if isinstance(n.value, ast.Call) and is_clock(n.value, scope)]
    if not clocked:
        return None
    is_waited = any(waits(project, module, c) for c in calls(method) if c.lineno <= clocked[-1].lineno)
    return method, is_waited
