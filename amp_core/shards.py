"""States with tensors that are sharded over ranks: made whole, cut again, or kept on disk shard by shard."""

import io
import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Mapping
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, distributed
from torch.utils._pytree import KeyPath, keystr, tree_map, tree_map_with_path

from amp_core import checkpoint
from amp_core.checkpoint import CheckpointError
from amp_core.parallel import is_first, is_sharded

if TYPE_CHECKING:
    from amp_core.step import TrainStep

Place: TypeAlias = Callable[[Tensor | None, Any], Any]  # what stands for a saved value, seen beside the step's own
REST = "rest.pt"  # beside the shards: all that is no shard, with empty tensors in their places


def gathered(state: Any) -> Any:  # noqa: ANN401  a state is a tree of anything
    """Return a nested state with every sharded tensor made whole, on the CPU; every rank must call it at the same time.

    TrainStep.state_dict does; without shards nothing is exchanged or copied.
    """
    return tree_map(lambda value: value.full_tensor().cpu() if is_sharded(value) else value, state)


def sharded(step: "TrainStep", state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a step's whole state with its tensors cut as this rank's parameters are, without an exchange.

    TrainStep.load_state_dict does it. The state may come from any number of ranks, and any way to wrap the model.
    """
    return _placed(step, state, _cut_as) if any(map(is_sharded, step.params)) else state


def save_shards(folder: Path, state: Mapping[str, Any]) -> None:
    """Write a state into a folder, whole or not at all: each rank writes its shards, the first one all else.

    Every rank must call it at the same time.

    Raises:
        ValueError: the state holds what no checkpoint can.
    """
    from torch.distributed.checkpoint.state_dict_saver import save  # here, since importing it takes time

    shards: dict[str, Any] = {}

    def take_out(path: KeyPath, value: Any) -> Any:  # noqa: ANN401  a state holds anything
        if not is_sharded(value):
            return value
        shards[keystr(path)] = value
        return torch.empty(value.shape, dtype=value.dtype, device="meta")

    rest = tree_map_with_path(take_out, state)
    partial, old = (folder.with_name(f".{folder.name}.{end}") for end in ("partial", "old"))
    if is_first():
        shutil.rmtree(partial, ignore_errors=True)
    _wait()
    if shards:
        save(shards, checkpoint_id=partial)
    if is_first():
        checkpoint.save(partial / REST, rest)
        if folder.exists():
            os.replace(folder, old)  # noqa: PTH105  a folder cannot take the place of one that is there
        partial.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
    _wait()


def read_shards(folder: Path, rest: Mapping[str, Any], step: "TrainStep") -> dict[str, Any]:
    """Return what `save_shards` wrote, whose rest is read, with each rank's part of a step's state, in `rest["step"]`.

    It may come from another number of ranks. Every rank must call it at the same time.

    Raises:
        CheckpointError: a file is missing or damaged, or holds code.
        ValueError: it is the state of another step.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.state_dict_loader import load

    step.refuse_other(rest["step"])
    state = {**rest, "step": _placed(step, rest["step"], _room_for)}
    shards: dict[str, Tensor] = {}

    def collect(path: KeyPath, value: Any, room: Any) -> None:  # noqa: ANN401  the same
        if _is_taken_out(value):
            shards[keystr(path)] = room

    tree_map_with_path(collect, rest, state)
    try:
        if shards:
            _Metadata(io.BytesIO((folder / ".metadata").read_bytes())).load()
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # a world of one is fine
                load(shards, checkpoint_id=folder)
    except (CheckpointException, OSError, *DAMAGES) as error:
        raise CheckpointError(
            f"checkpoint {str(folder)!r} is damaged or holds code ({error}): take an older one"
        ) from error
    return state


_METADATA = "Metadata MetadataIndex StorageMeta TensorStorageMetadata ChunkStorageMetadata TensorProperties"
_KNOWN = {
    *(f"torch.distributed.checkpoint.metadata.{name}" for name in (*_METADATA.split(), "_MEM_FORMAT_ENCODING")),
    *(f"torch.{name}" for name, value in vars(torch).items() if isinstance(value, torch.dtype)),
    *("torch.Size", "torch.serialization._get_layout", "torch.distributed.checkpoint.filesystem._StorageInfo"),
    *(f"{module}.{system}Path" for module in ("pathlib", "pathlib._local") for system in ("Posix", "Windows")),
}  # not the metadata of bytes, which torch would unpickle


DAMAGES = (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


class _Metadata(pickle.Unpickler):
    """Reads where torch's shards lie, from a pickle that might name any code, and no such code."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401  as the standard library has it
        if (module, name) == ("builtins", "getattr"):  # so Python before 3.11.4 writes a member of an enumeration
            return getitem
        if f"{module}.{name}" not in _KNOWN:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return super().find_class(module, name)


def _wait() -> None:
    if distributed.is_initialized():
        distributed.barrier()


def _placed(step: "TrainStep", state: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return a step's state with what `place` puts for each tensor, beside the model's own of the same name."""
    own = step.model.state_dict()
    changed = dict(state)
    changed["model"] = {name: place(own.get(name), value) for name, value in state["model"].items()}
    changed["optimizers"] = [
        _placed_moments(optimizer, saved, place)
        for optimizer, saved in zip(step.optimizers, state["optimizers"], strict=True)
    ]
    if step.ema is not None and state["ema"] is not None:
        pairs = zip(step.ema.averages, state["ema"]["averages"], strict=True)
        changed["ema"] = {**state["ema"], "averages": [place(average, value) for average, value in pairs]}
    return changed


def _placed_moments(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any], place: Place) -> dict[str, Any]:
    params = [param for group in optimizer.param_groups for param in group["params"]]
    state = {
        index: {name: place(params[index], value) for name, value in moments.items()}
        for index, moments in saved["state"].items()
    }
    return {**saved, "state": state}


def _is_taken_out(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_meta


def _room_for(own: Tensor | None, value: Any) -> Any:  # noqa: ANN401  the same
    return torch.empty_like(own, dtype=value.dtype) if own is not None and _is_taken_out(value) else value


def _cut_as(own: Tensor | None, whole: Any) -> Any:  # noqa: ANN401  the same
    """Return the shard of a whole tensor, cut as `own` is; what is none, such as a count, stays."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    shards = isinstance(whole, DTensor) or not isinstance(whole, Tensor)
    if shards or not isinstance(own, DTensor) or own.shape != whole.shape:
        return whole
    return distribute_tensor(whole, own.device_mesh, own.placements, src_data_rank=None)  # all have it: no exchange
