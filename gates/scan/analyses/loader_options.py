"""Loaders that prepare batches in the training process itself, where an accelerator waits for them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.reading.code import accelerated, broken, calls, constant, function_of, keyword
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.settings.cpu_only import only_on_cpu
from gates.scan.analyses.settings.options import REST, Options, calls_of, filled, sketched, written
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import canonical
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters
from gates.scan.site import Site

WORDS = ("DataLoader*",)
TRAINS = {"train", "fit", "evaluate", "train_one_epoch", "train_epoch", "train_model"}
MOVES = {"to", "cuda", "setup_dataloaders", "prepare"}
LIGHTNING = re.compile(r"(lightning|pytorch_lightning)\.")
MAKERS = re.compile(r"data|load|build|factor|input|setup")
NO_WORKERS = "the loader has no workers, so the device waits while a batch is made"
NOT_PINNED = "the loader does not pin its memory, so copies to the device block"
FOR_TRAINING = re.compile(r"(^|_)(train|fit)")
BY_POSITION = 5  # arguments before that for the workers


@dataclass(frozen=True)
class Loader:
    """A loader with one set of options that it is made with; `at` is the call that decides them."""

    call: ast.Call
    module: Module
    options: Options
    at: ast.Call
    place: Module

    def fault(self, project: Project, origins: Origins) -> str:
        """Return what is wrong with the options, or nothing."""
        scope = project.scope_at(self.call, self.module)
        if _is_on_device(self.call, scope):
            return ""
        if _is_off(self.options.get("num_workers"), origins, scope):
            return NO_WORKERS
        return NOT_PINNED if _is_off(self.options.get("pin_memory"), origins, scope) else ""


def look(project: Project) -> Iterator[Site]:
    """Yield each `DataLoader` without workers, or without pinned memory where batches are moved."""
    origins = Origins(project)
    fed = _fed(project)
    for module in project.modules.values():
        made = list(_loaders(project, module, origins))
        is_fed = module.path in fed
        wanted = made if is_fed else [o for o in made if _is_odd(o, made, project, origins) or _is_copied(o)]
        faults = {id(one): one.fault(project, origins) for one in made} if wanted else {}
        for one in wanted:
            others = [other for other in made if other.call is one.call]
            if fault := faults[id(one)]:
                here = all(faults[id(other)] for other in others)  # no caller does better, so it is the loader's own
                yield broken(module, one.call, fault) if here else broken(one.place, one.at, fault)


def _fed(project: Project) -> set[str]:
    """Return the files whose loaders feed a training on an accelerator."""
    feeding = [module for module in project.modules.values() if _feeds(module)]
    found = set(_by_trainer(project))
    if not feeding or only_on_cpu(project):
        return found
    found |= {module.path for module in feeding}
    for module in feeding:
        near = _imported(project, module)
        makers = [one for one in near if MAKERS.search(one.name.rpartition(".")[2])]
        found |= {m.path for m in (*near, *(far for one in makers for far in _imported(project, one)))}
    return found | {
        module.path for module in project.modules.values()
        if "DataLoader" in module.calls and not _is_test(module)
        and any(one in feeding for one in _imported(project, module))
    }  # fmt: skip


def _by_trainer(project: Project) -> Iterator[str]:
    """Yield the files whose loaders Lightning feeds to an accelerator that its trainer is told to take."""
    told = [
        k.value for m in project.modules.values() for call in m.calls.get("Trainer", ())
        if LIGHTNING.match(project.scope_at(call, m).dotted(call.func) or "")
        for k in call.keywords if k.arg in {"accelerator", "precision"}
    ]  # fmt: skip
    if any(isinstance(v, ast.Constant) and re.match(r"gpu$|cuda$|16", str(v.value)) for v in told):
        for module in project.modules.values():
            here = "DataLoader" in module.calls and not _is_test(module)
            if here and {"LightningDataModule", "LightningModule", "Trainer"} & module.words:
                yield module.path


def _feeds(module: Module) -> bool:
    """Return whether a file trains, on an accelerator, with batches that it moves there itself."""
    if not accelerated(module) or not (MOVES & module.calls.keys()):
        return False
    return not _is_test(module) and any("backward" in tail or tail in TRAINS for tail in module.calls)


def _is_copied(one: Loader) -> bool:
    """Return whether the function that makes a loader copies its batches without waiting, as only pinned ones are."""
    function, made = function_of(one.call, one.module), one.module.parents.get(one.call)
    names = {text_of(target) for target in made.targets} if isinstance(made, ast.Assign) else set()
    for loop in inner(function, ast.For) if function is not None and names else ():
        over = {text_of(n) for n in walk(loop.iter) if isinstance(n, ast.Name)} if isinstance(loop, ast.For) else set()
        moves = (call for call in calls(loop) if tail_of(call.func) in {"to", "cuda"})
        if over & names and any(constant(keyword(call, "non_blocking")) is True for call in moves):
            return True
    return False


def _is_test(module: Module) -> bool:
    """Return whether a file tests or shows something, with data that take no time."""
    *folders, name = module.path.split("/")
    return name.startswith("test_") or not {"demos", "tests"}.isdisjoint(folders)


def _imported(project: Project, module: Module) -> list[Module]:
    """Return the files of the program from which a file takes something."""
    names = [name for dotted in module.aliases.values() for name in (dotted, project.canonical(dotted, module))]
    found = (
        project.find_module(name.rpartition(".")[0], module) or project.find_module(name, module) for name in names
    )
    return [one for one in {m.path: m for m in found if m is not None}.values() if one is not module]


def _loaders(project: Project, module: Module, origins: Origins) -> Iterator[Loader]:
    for call in (*module.calls.get("DataLoader", ()), *_of_subclasses(project, module)):
        scope = project.scope_at(call, module)
        if len(call.args) <= BY_POSITION and (_is_loader(call.func, scope) or tail_of(call.func) != "DataLoader"):
            yield from _of_call(call, module, origins, {}, scope)
    for call in module.calls.get("partial", ()):
        if call.args and _is_loader(call.args[0], project.scope_at(call, module)):
            own = {k.arg: k.value for k in call.keywords if k.arg is not None}
            more = [written(k.value, project.scope_at(call, module)) for k in call.keywords if k.arg is None]
            own |= {key: value for options in more for key, value in (options or {}).items()}
            for use, there in calls_of(project, call, module) if None not in more else ():
                for found in _of_call(use, there, origins, own, project.scope_at(use, there)):
                    yield Loader(call, module, found.options, use, there)


def _is_loader(node: ast.expr, scope: Scope) -> bool:
    return canonical(scope.dotted(node) or "").startswith("torch.utils.data") and "DataLoader" in (
        scope.dotted(node) or ""
    )


def _of_subclasses(project: Project, module: Module) -> Iterator[ast.Call]:
    """Yield the calls that make a loader of a class of the program: in its constructor, or of it where it has none."""
    for info in project.once(_subclasses):
        begun = project.method(info, "__init__")
        if begun is None:
            yield from (c for c in module.calls.get(info.node.name, ()) if _makes(project, module, c, info))
        elif begun[1] is module and begun[2] is info:
            yield from (
                c for c in calls(begun[0]) if tail_of(c.func) == "__init__" and isinstance(c.func, ast.Attribute)
            )


def _subclasses(project: Project) -> Iterator[ClassInfo]:
    if any("DataLoader" in module.words for module in project.modules.values()):
        for info in project.classes.values():
            if any(_is_loader(base, info.scope) for each in project.order_of(info) for base in each.node.bases):
                yield info


def _makes(project: Project, module: Module, call: ast.Call, info: ClassInfo) -> bool:
    return project.scope_at(call, module).dotted(call.func) == info.name


def _of_call(call: ast.Call, module: Module, origins: Origins, own: Options, scope: Scope) -> Iterator[Loader]:
    """Yield the loader that a call makes, with the options of the call: one for each caller that hands on some."""
    own = own | {k.arg: k.value for k in call.keywords if k.arg is not None}
    more = [k.value for k in call.keywords if k.arg is None]
    if not more:
        yield Loader(call, module, own, call, module)
    elif len(more) == 1:
        found = sketched(more[0], scope)
        if found is not None and REST not in found:
            yield Loader(call, module, {**own, **found}, call, module)
        for options, at, place in _handed(found, scope, origins, call) if found is not None else ():
            yield Loader(call, module, {**own, **options}, at, place)


def _handed(
    found: Options, scope: Scope, origins: Origins, call: ast.Call
) -> Iterator[tuple[Options, ast.Call, Module]]:
    """Yield the options of a function with those that it is handed as `**options`, by its callers."""
    function, rest = function_of(call, scope.module), found.get(REST)
    if function is None or rest is None or function_of(rest, scope.module) is not function:
        return
    for site, place in origins.called(function):
        options = filled(found, site)
        if options is not None:
            yield options, site, place


def _is_off(value: ast.expr | None, origins: Origins, scope: Scope) -> bool:
    """Return whether an option is left out, off, or a parameter that no caller ever turns on."""
    if value is None:
        return True
    if isinstance(value, ast.Attribute):
        return _is_off_by_default(value, scope)
    if not isinstance(value, ast.Name):
        return _is_zero(value)
    made = scope.through(value)
    if made is not None:
        return isinstance(made[0], ast.Constant) and _is_zero(made[0])
    function = scope.function
    default = parameters(function).get(value.id) if isinstance(function, ast.FunctionDef) else None
    passed = [origin.node for origin in origins.of(value, scope) if origin.node is not value]
    return default is not None and _is_zero(default) and _is_called(origins, function) and all(map(_is_zero, passed))


def _is_off_by_default(value: ast.Attribute, scope: Scope) -> bool:
    """Return whether an option is a field that is off, and that nobody who makes such an object sets."""
    owner = scope.class_of(value.value)
    fields = (s for s in owner.node.body if isinstance(s, ast.AnnAssign)) if owner is not None else ()
    default = next((f.value for f in fields if tail_of(f.target) == value.attr and f.value is not None), None)
    if owner is None or default is None or not _is_zero(default) or scope.project.is_reset(owner, value.attr):
        return False
    made = [c for c, _ in scope.project.named.get(owner.node.name, ())]
    plain = all(k.arg not in {None, value.attr} for c in made for k in c.keywords)
    return bool(made) and plain and not any(len(c.args) > 1 for c in made)


def _is_called(origins: Origins, function: ast.AST | None) -> bool:
    return function is not None and any(
        not any(k.arg is None for k in call.keywords) for call, _ in origins.called(function)
    )


def _is_on_device(call: ast.Call, scope: Scope) -> bool:
    """Return whether a loader goes over tensors that lie on the device before."""
    made = scope.through(call.args[0]) if call.args else None
    data = made[0] if made is not None else call.args[0] if call.args else None
    is_held = isinstance(data, ast.Call) and tail_of(data.func) == "TensorDataset"
    parts = (n for n in ast.walk(data) if isinstance(n, ast.Call)) if is_held and data is not None else ()
    return any(tail_of(n.func) in {"cuda", "to"} or any(k.arg == "device" for k in n.keywords) for n in parts)


def _is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and (constant(value) is False or constant(value) == 0)


def _is_odd(loader: Loader, made: list[Loader], project: Project, origins: Origins) -> bool:
    """Return whether a loader for training has neither option, while another of its file has both."""
    wanted = {"num_workers", "pin_memory"}
    return _is_for_training(loader) and not wanted & loader.options.keys() and any(
        wanted <= other.options.keys() and not other.fault(project, origins) for other in made
    )  # fmt: skip


def _is_for_training(loader: Loader) -> bool:
    """Return whether a loader shuffles, or it, its data or its function is called after the training."""
    function = function_of(loader.at, loader.place)
    around = loader.place.parents.get(loader.at)
    named = [function.name] if function is not None else []
    named += [tail_of(target) for target in around.targets] if isinstance(around, ast.Assign) else []
    named += [tail_of(arg) for arg in loader.at.args[:1]]
    return constant(loader.options.get("shuffle")) is True or any(FOR_TRAINING.search(name) for name in named)
