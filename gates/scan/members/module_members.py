"""The members of `torch.nn.Module`, of what commonly wraps one, and those that a program registers by name."""

import ast
import re

from gates.scan.members.code import constant
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import walk

OWN = frozenset(
    {
        "T_destination", "add_module", "apply", "bfloat16", "buffers", "call_super_init", "children",
        "compile", "cpu", "cuda", "double", "dump_patches", "eval", "extra_repr", "float", "forward",
        "get_buffer", "get_extra_state", "get_parameter", "get_submodule", "half", "ipu", "load_state_dict",
        "modules", "mtia", "named_buffers", "named_children", "named_modules", "named_parameters",
        "parameters", "register_backward_hook", "register_buffer", "register_forward_hook",
        "register_forward_pre_hook", "register_full_backward_hook", "register_full_backward_pre_hook",
        "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook", "register_module",
        "register_parameter", "register_state_dict_post_hook", "register_state_dict_pre_hook",
        "requires_grad_", "set_extra_state", "set_submodule", "share_memory", "state_dict", "to", "to_empty",
        "train", "training", "type", "xpu", "zero_grad",
    }
)  # fmt: skip
WRAPPED = frozenset(
    {
        "module", "_orig_mod", "no_sync", "backward", "step", "save_checkpoint", "load_checkpoint", "join",
        "require_backward_grad_sync", "clip_grad_norm_", "summon_full_params", "unshard", "reshard",
        "set_requires_gradient_sync", "set_reshard_after_forward", "set_is_last_backward",
        "set_requires_all_reduce", "gradient_accumulation_steps", "is_gradient_accumulation_boundary",
        "zero_optimization", "engine", "optimizer", "device", "dtype", "config", "base_model", "peft_config",
        "hf_device_map",
    }
)  # fmt: skip
REGISTERS = frozenset({"add_module", "register_module", "register_buffer", "register_parameter"})
HELPS = re.compile(r"(?i)register|buffer|attach|inject|bind|wrap|patch|add_|param")


def is_member(name: str) -> bool:
    """Return whether every module has a member, or one may have it that is wrapped in another; private names may be."""
    return name.startswith("_") or name in OWN or name in WRAPPED


def registered(node: ast.AST) -> set[str] | None:
    """Return the names under which code registers parts of a module; `None` where those cannot be told."""
    found: set[str] = set()
    for call in walk(node):
        if isinstance(call, ast.Call) and tail_of(call.func) in REGISTERS:
            given = [k.value for k in call.keywords if k.arg == "name"] or call.args[:1]
            name = constant(given[0]) if given else None
            if not isinstance(name, str):
                return None
            found.add(name)
        elif isinstance(call, ast.Call) and any(tail_of(arg) == "self" for arg in call.args):
            told = {name for name in map(constant, call.args) if isinstance(name, str)}
            if not told and HELPS.search(tail_of(call.func)):
                return None
            found |= told  # helpers are told the names
    return found
