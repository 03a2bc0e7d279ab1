"""The device waited for with each step."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import broken, calls
from gates.scan.analyses._hot import helper_of, hot_calls, steps
from gates.scan.module import tail_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("synchronize",)
PEAKS = frozenset({"reset_peak_memory_stats", "max_memory_allocated", "max_memory_reserved"})


def look(project: Project) -> Iterator[Site]:
    """Yield each `synchronize()` in the hot path, but for that of a benchmark."""
    for module in project.modules.values():
        for call in hot_calls(project, module, {"synchronize"}):
            helper = helper_of(project, module, call)
            if helper is None:
                is_measured = is_benchmark(call, module)
            else:
                is_measured = helper in steps(project).timed or bool(PEAKS & _asked(helper))
            if not is_measured:
                yield broken(module, call, "the host waits for the device with each step")


def _asked(function: ast.AST) -> set[str]:
    return {tail_of(call.func) for call in calls(function)}
