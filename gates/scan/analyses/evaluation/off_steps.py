"""Steps of an evaluation that put their model off themselves and run it on one batch: `valid_step(sample, model)`."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import Evaluation, is_test
from gates.scan.analyses.evaluation.rested import GRADIENTS
from gates.scan.analyses.evaluation.switches import turns_off
from gates.scan.analyses.reading.code import calls, functions
from gates.scan.analyses.training.forwards import trains
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project

STEP = re.compile(r"(?i)(^|_)(val|valid|validation|validate|eval|evaluation|evaluate|test)_?(step|batch)$")


def off_steps(project: Project) -> Iterator[Evaluation]:
    """Yield these steps, each with the first call that runs the model, or is handed it."""
    for module in project.modules.values():
        for function in functions(module) if "eval" in module.calls and not is_test(module) else ():
            if not STEP.search(function.name) or trains(function) or GRADIENTS.search(text_of(function)):
                continue
            off = [c for c in calls(function) if turns_off(c) and isinstance(c.func, ast.Attribute)]
            models = {text_of(c.func.value) for c in off if isinstance(c.func, ast.Attribute)}
            runs = [c for c in calls(function) if off and c.lineno > off[0].lineno and _is_run(c, models)]
            if runs:
                first = min(runs, key=lambda c: (c.lineno, c.col_offset))
                yield Evaluation(module, function, first, first, named=False)


def _is_run(call: ast.Call, models: set[str]) -> bool:
    """Return whether a call runs one of some models, or is handed it."""
    return text_of(call.func) in models or any(text_of(arg) in models for arg in call.args)
