"""The order of a scaled step: scale, backward, unscale, clip, step, update."""

import ast
import itertools
from collections.abc import Iterator

from gates.model import Severity
from gates.rules.code_rule import CodeRule, Site
from gates.syntax import SourceModule, live_nodes

ORDER = ("scale", "backward", "unscale_", "clip", "step", "update")
CLIPS = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"}


def look(module: SourceModule) -> Iterator[Site]:
    """Yield each function that takes a step with a scaler, and whether its calls stand in the order of a step."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        calls = sorted(_calls(node, module), key=lambda call: (call[1], ORDER.index(call[0])))
        words = [word for word, _ in calls]
        if "scale" not in words or "step" not in words:
            continue
        first = dict(reversed(calls))
        problem = _problem(words)
        line, last = (first[problem[0]],) * 2 if problem else (min(first.values()), max(line for _, line in calls))
        yield Site(line, last, problem is None, problem[1] if problem else f"{node.name}: {' -> '.join(words)}")


def _problem(words: list[str]) -> tuple[str, str] | None:
    """Return the call that is out of order and what is wrong with it."""
    at = {word: words.index(word) for word in reversed(words)}
    if "clip" in at and "unscale_" not in at:
        return "clip", "gradients are clipped while they are still scaled: unscale_ is missing"
    if "update" not in at:
        return "step", "the scaler steps but is never updated"
    present = [word for word in ORDER if word in at]
    for before, after in itertools.pairwise(present):
        if at[before] > at[after]:
            return after, f"{after} comes before {before}"
    return None


def _calls(function: ast.AST, module: SourceModule) -> Iterator[tuple[str, int]]:
    """Yield the calls of a step with their lines; a method counts for what its receiver is called."""
    for node in live_nodes(function):
        if not isinstance(node, ast.Call):
            continue
        if module.dotted(node.func) in CLIPS:
            yield "clip", node.lineno
        elif isinstance(node.func, ast.Attribute) and _is_scaler(node.func.value) and node.func.attr in ORDER:
            yield node.func.attr, node.lineno
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            yield "backward", node.lineno


def _is_scaler(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "scaler" in name.lower()


RULE = CodeRule(
    id="amp-step-order",
    severity=Severity.CRITICAL,
    problem="The calls of a scaled step stand in the wrong order.",
    impact="Clipping sees gradients that are too large by the loss scale, or the scale never adapts.",
    fix="scaler.scale(loss).backward(); scaler.unscale_(optimizer); clip; scaler.step(optimizer); scaler.update()",
    good=(
        "import torch\n"
        "def step(scaler, optimizer, loss, parameters):\n"
        "    scaler.scale(loss).backward()\n"
        "    scaler.unscale_(optimizer)\n"
        "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n"
        "    scaler.step(optimizer)\n"
        "    scaler.update()\n"
    ),
    bad=(
        "import torch\n"
        "def step(scaler, optimizer, loss, parameters):\n"
        "    scaler.scale(loss).backward()\n"
        "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n"
        "    scaler.unscale_(optimizer)\n"
        "    scaler.step(optimizer)\n"
        "    scaler.update()\n"
    ),
    look=look,
)
