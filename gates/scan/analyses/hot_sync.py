"""The device waited for with each step."""

from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import broken
from gates.scan.analyses._hot import helper_of, hot_calls, measures_memory, steps
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("synchronize*",)


def look(project: Project) -> Iterator[Site]:
    """Yield each `synchronize()` in the hot path, but for that of a benchmark."""
    for module in project.modules.values():
        for call in hot_calls(project, module, {"synchronize"}):
            helper = helper_of(project, module, call)
            if helper is None:
                is_measured = is_benchmark(call, module)
            else:
                is_measured = helper in steps(project).timed or measures_memory(helper)
            if not is_measured:
                yield broken(module, call, "the host waits for the device with each step")
