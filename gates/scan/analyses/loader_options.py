"""Loaders that prepare batches in the training process itself, where an accelerator waits for them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses._code import accelerated, broken, constant, function_of, stays_on_cpu
from gates.scan.analyses._origins import Origins
from gates.scan.known import canonical
from gates.scan.module import Module
from gates.scan.project import Project
from gates.scan.scope import Scope
from gates.scan.site import Site

WORDS = ("DataLoader*",)
TRAINS = {"train", "fit", "evaluate", "train_one_epoch", "train_epoch", "train_model"}
MOVES = {"to", "cuda", "setup_dataloaders", "prepare"}
MAKERS = re.compile(r"data|load|build|factor|input|setup")
NO_WORKERS = "the loader has no workers, so the device waits while a batch is made"
NOT_PINNED = "the loader does not pin its memory, so copies to the device block"
BY_POSITION = 5  # arguments before that for the workers
Options = dict[str, ast.expr]


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
        if _is_off(self.options.get("num_workers"), origins, scope):
            return NO_WORKERS
        return NOT_PINNED if _is_off(self.options.get("pin_memory"), origins, scope) else ""


def look(project: Project) -> Iterator[Site]:
    """Yield each `DataLoader` without workers, or without pinned memory where batches are moved."""
    origins = Origins(project)
    fed = _fed(project)
    for module in project.modules.values():
        made = list(_loaders(project, module, origins))
        wanted = made if module.path in fed else [one for one in made if _is_odd(one, made, project, origins)]
        faults = {id(one): one.fault(project, origins) for one in wanted}
        for one in wanted:
            others = [other for other in wanted if other.call is one.call]
            if fault := faults[id(one)]:
                here = all(faults[id(other)] for other in others)  # no caller does better, so it is the loader's own
                yield broken(module, one.call, fault) if here else broken(one.place, one.at, fault)


def _fed(project: Project) -> set[str]:
    """Return the files whose loaders feed a training on an accelerator."""
    feeding = [module for module in project.modules.values() if _feeds(module)]
    if not feeding or stays_on_cpu(project):
        return set()
    found = {module.path for module in feeding}
    for module in feeding:
        near = _imported(project, module)
        makers = [one for one in near if MAKERS.search(one.name.rpartition(".")[2])]
        found |= {m.path for m in (*near, *(far for one in makers for far in _imported(project, one)))}
    return found | {
        module.path for module in project.modules.values()
        if "DataLoader" in module.calls and not _is_test(module)
        and any(one in feeding for one in _imported(project, module))
    }  # fmt: skip


def _feeds(module: Module) -> bool:
    """Return whether a file trains, on an accelerator, with batches that it moves there itself."""
    if not accelerated(module) or not (MOVES & module.calls.keys()):
        return False
    return not _is_test(module) and any("backward" in tail or tail in TRAINS for tail in module.calls)


def _is_test(module: Module) -> bool:
    return module.path.rpartition("/")[2].startswith("test_")


def _imported(project: Project, module: Module) -> list[Module]:
    """Return the files of the program from which a file takes something."""
    names = [name for dotted in module.aliases.values() for name in (dotted, project.canonical(dotted, module))]
    found = (
        project.find_module(name.rpartition(".")[0], module) or project.find_module(name, module) for name in names
    )
    return [one for one in {m.path: m for m in found if m is not None}.values() if one is not module]


def _loaders(project: Project, module: Module, origins: Origins) -> Iterator[Loader]:
    for call in module.calls.get("DataLoader", []):
        scope = project.scope_at(call, module)
        if not canonical(scope.dotted(call.func) or "").startswith("torch.utils.data") or len(call.args) > BY_POSITION:
            continue
        own: Options = {k.arg: k.value for k in call.keywords if k.arg is not None}
        more = [k.value for k in call.keywords if k.arg is None]
        if not more:
            yield Loader(call, module, own, call, module)
        elif len(more) == 1:
            written = _written(more[0], scope)
            if written is not None:
                yield Loader(call, module, {**own, **written}, call, module)
            for options, at, place in _handed(more[0], scope, origins, call):
                yield Loader(call, module, {**own, **options}, at, place)


def _written(more: ast.expr, scope: Scope) -> Options | None:
    """Return the options of a dictionary that is written out, where nothing is added to it."""
    uses = 0
    if isinstance(more, ast.Name):
        found = scope.lookup(more.id)
        values = [b.node for b in found[1]] if found else []
        body = (found[0].function or found[0].module.tree) if found else None
        for node in ast.walk(body) if body is not None else ():
            if isinstance(node, ast.Name) and node.id == more.id and not isinstance(node.ctx, ast.Store):
                parent = scope.module.parents.get(node)
                uses += not (isinstance(parent, ast.keyword) and parent.arg is None)
        more = values[0] if len(values) == 1 and isinstance(values[0], ast.Dict) else more
    elif isinstance(more, ast.Call) and isinstance(more.func, ast.Name) and more.func.id == "dict" and not more.args:
        return {k.arg: k.value for k in more.keywords if k.arg} if all(k.arg for k in more.keywords) else None
    if uses or not isinstance(more, ast.Dict) or not all(isinstance(k, ast.Constant) for k in more.keys):
        return None
    return {str(constant(k)): v for k, v in zip(more.keys, more.values, strict=True)}


def _handed(
    more: ast.expr, scope: Scope, origins: Origins, call: ast.Call
) -> Iterator[tuple[Options, ast.Call, Module]]:
    """Yield the options that a function hands on as `**options`, by its callers."""
    function = function_of(call, scope.module)
    if (
        function is None
        or not isinstance(more, ast.Name)
        or not function.args.kwarg
        or function.args.kwarg.arg != more.id
    ):
        return
    if any(isinstance(n, ast.Name) and n.id == more.id and n is not more for n in ast.walk(function)):
        return  # it may add to them
    sites = list(origins.called(function))
    for site, place in sites:
        if not any(k.arg is None for k in site.keywords) and not any(isinstance(a, ast.Starred) for a in site.args):
            yield {k.arg: k.value for k in site.keywords if k.arg is not None}, site, place


def _is_off(value: ast.expr | None, origins: Origins, scope: Scope) -> bool:
    """Return whether an option is left out, off, or a parameter that no caller ever turns on."""
    if value is None:
        return True
    if not isinstance(value, ast.Name):
        return _is_zero(value)
    function = scope.function
    default = _default(function, value.id) if isinstance(function, ast.FunctionDef) else None
    passed = [origin.node for origin in origins.of(value, scope) if origin.node is not value]
    return default is not None and _is_zero(default) and _is_called(origins, function) and all(map(_is_zero, passed))


def _is_called(origins: Origins, function: ast.AST | None) -> bool:
    return function is not None and any(
        not any(k.arg is None for k in call.keywords) for call, _ in origins.called(function)
    )


def _default(function: ast.FunctionDef, name: str) -> ast.expr | None:
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    pairs = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    pairs |= {
        a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is not None
    }
    return pairs.get(name)


def _is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and (constant(value) is False or constant(value) == 0)


def _is_odd(loader: Loader, made: list[Loader], project: Project, origins: Origins) -> bool:
    """Return whether a loader for training has neither option, while another of its file has both."""
    function = function_of(loader.call, loader.module)
    trains = constant(loader.options.get("shuffle")) is True or (
        function is not None and re.search(r"(^|_)(train|fit)", function.name) is not None
    )
    has_neither = not {"num_workers", "pin_memory"} & loader.options.keys()
    return trains and has_neither and any(
        {"num_workers", "pin_memory"} <= other.options.keys() and not other.fault(project, origins)
        and constant(other.options["pin_memory"]) is True
        for other in made
    )  # fmt: skip
