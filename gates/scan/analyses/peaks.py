"""Peaks of memory that hold what came before."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import broken, function_of
from gates.scan.module import Module
from gates.scan.nodes import text_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("max_memory_allocated", "max_memory_reserved")
RESETS = (
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_accumulated_memory_stats",
)


def look(project: Project) -> Iterator[Site]:
    """Yield each reading of the peak in a benchmark whose file never sets it back."""
    for module in project.modules.values():
        if any(name in module.calls for name in RESETS):
            continue
        for name in ("max_memory_allocated", "max_memory_reserved"):
            for call in module.calls.get(name, []):
                if (is_benchmark(call, module) or _is_probe(project, call, module)) and not any(
                    r in project.named for r in RESETS
                ):
                    yield broken(module, call, f"{name}() holds the peak of all that ran before")


def _is_probe(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether a peak is read at the end of a context that measures what runs in it."""
    function = function_of(call, module)
    if function is None:
        return False
    managed = any("contextmanager" in text_of(d) for d in function.decorator_list)
    named = re.search(r"mem|peak|probe", function.name) is not None
    if named and len(project.named.get(function.name, ())) > 1:
        return any(isinstance(around, ast.Return) for around in module.ancestors(call))
    return function.name == "__exit__" or (managed and named)
