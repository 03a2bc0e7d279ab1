"""The device waited for with each step."""

from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import broken
from gates.scan.analyses._hot import hot_calls, used_with_each_step
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("synchronize",)


def look(project: Project) -> Iterator[Site]:
    """Yield each `synchronize()` in the hot path, but for that of a benchmark."""
    for module in project.modules.values():
        for call in hot_calls(project, module, {"synchronize"}):
            if not is_benchmark(call, module):
                yield broken(module, call, "the host waits for the device with each step")
        for call in module.calls.get("synchronize", []):
            if used_with_each_step(project, module, call):
                yield broken(module, call, "the host waits for the device with each step that this is around")
