"""Loaders that prepare batches in the training process itself, where an accelerator waits for them."""

from collections.abc import Iterator

from gates.scan.analyses._code import accelerated, broken, constant, keyword, takes_more
from gates.scan.known import canonical
from gates.scan.module import Module
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("DataLoader",)
TRAINS = {"train", "fit", "evaluate", "train_one_epoch", "train_epoch", "train_model"}


def _feeds(module: Module) -> bool:
    """Return whether a file trains, on an accelerator, with batches that it moves there itself."""
    if not accelerated(module) or not ({"to", "cuda"} & module.calls.keys()):
        return False
    file = module.path.rpartition("/")[2]
    return not file.startswith("test_") and any("backward" in tail or tail in TRAINS for tail in module.calls)


def _used(project: Project, module: Module) -> Iterator[Module]:
    """Yield the files of the program from which a file takes loaders, by what it calls."""
    for dotted in module.aliases.values():
        found = project.find_module(dotted.rpartition(".")[0], module) or project.find_module(dotted, module)
        if found is not None and "DataLoader" in found.calls:
            yield found


def look(project: Project) -> Iterator[Site]:
    """Yield each `DataLoader` without workers, or without pinned memory where batches are moved."""
    feeding = [module for module in project.modules.values() if _feeds(module)]
    fed = {module.path for module in feeding} | {used.path for module in feeding for used in _used(project, module)}
    for module in project.modules.values():
        for call in module.calls.get("DataLoader", []):
            named = project.scope_at(call, module).dotted(call.func) or ""
            if not canonical(named).startswith("torch.utils.data") or takes_more(call) or module.path not in fed:
                continue
            if len(call.args) > 5:
                continue  # workers by position
            workers, pinned = keyword(call, "num_workers"), keyword(call, "pin_memory")
            if workers is None or (
                constant(workers) == 0 and workers is not None and not isinstance(constant(workers), bool)
            ):
                yield broken(module, call, "the loader has no workers, so the device waits while a batch is made")
            elif pinned is None or constant(pinned) is False:
                yield broken(module, call, "the loader does not pin its memory, so copies to the device block")
