"""What a framework hands on of what a step returns: Ignite to metrics and handlers, Lightning to callbacks."""

import ast
import re

from gates.scan.analyses.reading.code import keyword
from gates.scan.analyses.reading.running import Origin
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project

BATCH_END = re.compile(r"on_(?P<phase>train|validation|test)_batch_end")
STEPS = {"train": "training_step", "validation": "validation_step", "test": "test_step"}
EACH = re.compile(r"(ITERATION|GET_BATCH)_(STARTED|COMPLETED)")
ENGINES = frozenset({"ignite.engine.Engine", "ignite.engine.engine.Engine"})


def step_of_output(project: Project, module: Module, node: ast.Attribute) -> Origin | None:
    """Return the step of which `trainer.state.output` is what it returned."""
    state = node.value if node.attr == "output" else None
    is_state = isinstance(state, ast.Attribute) and state.attr == "state"
    return _step(project, module, state.value) if is_state and isinstance(state, ast.Attribute) else None


def step_of_transform(project: Project, module: Module, given: ast.Lambda) -> Origin | None:
    """Return the step that a metric's `output_transform` is handed the output of, by what the metric is attached to."""
    option = module.parents.get(given)
    metric = module.parents.get(option) if isinstance(option, ast.keyword) else None
    if not isinstance(metric, ast.Call) or keyword(metric, "output_transform") is not given:
        return None
    held = module.parents.get(metric)
    names = {text_of(metric)} | ({text_of(t) for t in held.targets} if isinstance(held, ast.Assign) else set())
    attached = [
        call.args[0]
        for call in module.calls.get("attach", ())
        if isinstance(call.func, ast.Attribute) and text_of(call.func.value) in names and call.args
    ]
    return _step(project, module, attached[0]) if len({text_of(each) for each in attached}) == 1 else None


def _step(project: Project, module: Module, engine: ast.expr) -> Origin | None:
    """Return the function of the program that an engine was made to run."""
    behind = project.scope_at(engine, module).through(engine)
    if behind is None or not isinstance(behind[0], ast.Call) or behind[1].dotted(behind[0].func) not in ENGINES:
        return None
    given = keyword(behind[0], "process_function") or (behind[0].args[0] if behind[0].args else None)
    target = project.types.function(_called(given), behind[1]) if given is not None else None
    return Origin(target, None, sure=True) if target is not None else None


def runs_with_each(project: Project, module: Module, handler: Function) -> Function | None:
    """Return the step that Ignite runs a handler with, each time: `@trainer.on(Events.ITERATION_COMPLETED)`."""
    asked = [(d.func.value, d.args) for d in handler.decorator_list if _adds(d, "on")]  # type: ignore[attr-defined]
    calls = (c for c in module.calls.get("add_event_handler", ()) if _adds(c, "add_event_handler"))
    asked += [(c.func.value, c.args) for c in calls if tail_of(c.args[-1]) == handler.name]  # type: ignore[attr-defined]
    for engine, given in asked:
        if any(isinstance(event, ast.Attribute) and EACH.fullmatch(event.attr) for event in given):
            step = _step(project, module, engine)
            if step is not None:
                return step.function
    return None


def _adds(call: ast.expr, name: str) -> bool:
    """Return whether a call has an engine run something at an event."""
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == name
        and bool(call.args)
    )


def _called(node: ast.expr) -> ast.Call:
    """Return a call of a function where it is handed over."""
    return ast.copy_location(ast.Call(node, [], []), node)


def step_of_batch_end(project: Project, function: Function, name: str) -> Origin | None:
    """Return the one step of the program that Lightning hands the output of to a method that a batch ends with."""
    told = BATCH_END.fullmatch(function.name)
    if told is None or name != "outputs" or name not in {arg.arg for arg in function.args.args}:
        return None
    steps = [info.methods[step] for info in project.classes.values() if (step := STEPS[told["phase"]]) in info.methods]
    return Origin(steps[0], None, sure=True) if len(steps) == 1 else None
