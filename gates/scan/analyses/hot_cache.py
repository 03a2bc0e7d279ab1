"""The allocator's cache, emptied with each step."""

from collections.abc import Iterator

from gates.scan.analyses.reading.code import broken, function_of
from gates.scan.analyses.training.batches import runs_each_batch
from gates.scan.analyses.training.feeding import feeds_training
from gates.scan.analyses.training.hot import helper_of, hot_calls, is_of_peak, measures_memory, places_of, steps
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("empty_cache",)


def look(project: Project) -> Iterator[Site]:
    """Yield each `empty_cache()` in the hot path."""
    for module in project.modules.values():
        for call in hot_calls(project, module, {"empty_cache"}):
            helper = helper_of(project, module, call)
            if helper is None and is_of_peak(module, call):
                continue
            if helper is None or not (helper in steps(project).timed or measures_memory(helper)):
                for there, at in places_of(project, module, call, helper):
                    way = [("it runs", module, call)] if at is not call else []
                    yield broken(there, at, "the cache of the allocator is emptied with each step", *way)
        for call in module.calls.get("empty_cache", ()):
            around = function_of(call, module)
            is_each = runs_each_batch(project, module, call) or feeds_training(project, module, call)
            if is_each and not (around is not None and measures_memory(around)):
                yield broken(module, call, "the cache of the allocator is emptied with each batch")
