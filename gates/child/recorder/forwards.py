"""Calls of outermost modules, in training: the forward passes, whoever's loop makes them."""

import threading

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from .observing import Scene

WRAPPERS = {"_FabricModule", "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"}
RAISED = object()


class Forwards:
    """Tells the observers of each outermost call of a module that builds a graph."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._inside = threading.local()
        register_module_forward_pre_hook(self._before)
        register_module_forward_hook(self._after, with_kwargs=True, always_call=True)

    def _looks(self, module: nn.Module) -> bool:
        if torch.compiler.is_compiling():  # nothing of ours may come into a compiled graph
            return False
        if type(module).__name__ in WRAPPERS:  # what they wrap is the model
            return False
        return not self._scene.paused and torch.is_grad_enabled() and ("backward", 0) not in self._scene.active

    def _before(self, module: nn.Module, _args: object) -> None:
        if not self._looks(module):
            return
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        if self._inside.depth > 1:
            return
        self._inside.outermost = module
        scene = self._scene
        scene.journal.tell("forward")
        scene.let_know(lambda each: each.before_call(module))

    def _after(
        self, module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], output: object = RAISED
    ) -> None:
        if not self._looks(module) or not getattr(self._inside, "depth", 0):
            return
        self._inside.depth -= 1
        if self._inside.depth or self._inside.outermost is not module or output is RAISED:
            return
        self._scene.let_know(lambda each: each.after_call(module, args, kwargs, output))
