"""Checkpoints: written whole or not at all, read without unpickling code."""

import os
import pickle
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

FORMAT = "amp_core.checkpoint/1"
PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device)  # what weights_only reads, beside tensors


class CheckpointError(ValueError):
    """A checkpoint cannot be read, or belongs to something else."""


def save(path: Path | str, state: Mapping[str, Any]) -> None:
    """Write a state of tensors, numbers, strings, lists and dictionaries; a crash leaves the old file or the new one.

    NumPy's scalars become Python's.

    Raises:
        ValueError: the state holds what `load` would refuse, named by its place in it; nothing is written.
        OSError: the file cannot be written; what stood there is untouched.
    """
    state = plain(state, "state")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def load(path: Path | str, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a state onto a device; only tensors and plain values are accepted, never code.

    Raises:
        CheckpointError: the file is missing, damaged, not one of ours, or holds pickled classes.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {str(path)!r}: check the path, or start without one")
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():  # torch.load looks at no checksum
                raise zipfile.BadZipFile(f"{damaged} has another checksum")  # noqa: TRY301  as any damage
        state = torch.load(path, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"checkpoint {str(path)!r} holds more than tensors and plain values, or is no checkpoint:"
            " it is not loaded, since that could run code of its author"
        ) from error
    except (RuntimeError, EOFError, OSError, zipfile.BadZipFile, KeyError, ValueError, NotImplementedError) as error:
        size = path.stat().st_size
        raise CheckpointError(
            f"checkpoint {str(path)!r} is damaged or was cut short ({size} bytes): take an older one"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise CheckpointError(f"checkpoint {str(path)!r} has format {found!r}, expected {FORMAT!r}")
    return state


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside the wrappers of torch.compile and DistributedDataParallel, whose names would stick."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, nn.parallel.DistributedDataParallel):
            inner = model.module
        if inner is None:
            return model
        model = inner


def refuse_other_model(model: nn.Module, saved: Mapping[str, Tensor]) -> None:
    """Raise CheckpointError unless a saved state has the names and shapes of the model's."""
    own = model.state_dict()
    missing, foreign = sorted(set(own) - set(saved)), sorted(set(saved) - set(own))
    if missing or foreign:
        parts = [
            f"{what} {names[0]!r}{_more(names)}" for what, names in (("lacks", missing), ("has", foreign)) if names
        ]
        raise CheckpointError(f"the checkpoint is of another model: it {' and '.join(parts)}: build the model it is of")
    for name, value in own.items():
        if isinstance(value, Tensor) and _form(saved[name]) != _form(value):
            raise CheckpointError(
                f"the checkpoint is of another model: {name!r} is {_form(saved[name])}, expected {_form(value)}:"
                " build the model it is of"
            )


def plain(value: Any, place: str) -> Any:  # noqa: ANN401  a state is a tree of anything
    """Return a state with NumPy's scalars made Python's.

    Raises:
        ValueError: it holds something that only unpickling code could bring back, named by its place.
    """
    if isinstance(value, Mapping):
        return {key: plain(each, f"{place}[{key!r}]") for key, each in value.items()}
    if type(value) in (list, tuple, torch.Size):
        return type(value)(plain(each, f"{place}[{index}]") for index, each in enumerate(value))
    if isinstance(value, Tensor) or value is None or type(value) in PLAIN:
        return value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    raise ValueError(
        f"{place} is a {type(value).__name__}, expected tensors, numbers, strings, lists and dictionaries:"
        " a checkpoint holds nothing that would be code"
    )


def _form(value: Any) -> str:  # noqa: ANN401  another model's entry may be anything
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _sync_folder(folder: Path) -> None:
    """Make the folder's new entry durable; not every file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder cannot be opened on Windows
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
