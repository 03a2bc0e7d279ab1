"""Tests of checkpoints: whole or not at all, and nothing but tensors and plain values."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from amp_core import checkpoint
from amp_core.checkpoint import CheckpointError, load, refuse_other_model, save, unwrapped

DRAWN = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
TENSORS = {str(dtype): DRAWN.to(dtype) for dtype in (torch.float32, torch.bfloat16, torch.float16)}
STATE: dict[str, Any] = {"step": 7, "name": "run", "list": [1, 2.5, None], "pair": (1, "x")}


def test_what_is_saved_is_loaded_every_dtype_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "state.pt"
    save(path, STATE | TENSORS)
    state = load(path)
    assert {key: value for key, value in state.items() if key not in TENSORS} == STATE | {"format": checkpoint.FORMAT}
    for name, value in TENSORS.items():
        assert state[name].dtype is value.dtype
        assert torch.equal(state[name], value)


def test_a_failed_write_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.pt"
    save(path, STATE)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(path, {"step": 8})
    assert load(path)["step"] == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.pt"]


def test_a_state_that_cannot_be_pickled_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^state\['deep'\]\[1\]\['f'\] is a function, expected tensors, numbers, "):
        save(tmp_path / "state.pt", {"deep": [0, {"f": lambda: None}]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", [0, 1, 10, 300, -1])
def test_a_truncated_checkpoint_is_refused_in_one_line(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    save(path, STATE)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", [0.02, 0.5, 0.97])
def test_one_flipped_bit_is_found(where: float, tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    save(path, {"weight": torch.arange(10_000.0)})
    data = bytearray(path.read_bytes())
    data[int(len(data) * where)] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged or was cut short"):
        load(path)


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("run-by-a-checkpoint",)


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"format": checkpoint.FORMAT, "evil": Evil()}, tmp_path / "state.pt")
    with pytest.raises(CheckpointError, match="holds more than tensors and plain values") as caught:
        load(tmp_path / "state.pt")
    assert "\n" not in str(caught.value)
    assert not Path("run-by-a-checkpoint").exists()


def test_a_missing_checkpoint_and_one_of_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"^no checkpoint at .*absent\.pt"):
        load(tmp_path / "absent.pt")
    torch.save({"weight": torch.ones(1)}, tmp_path / "state.pt")
    with pytest.raises(CheckpointError, match=r"has format None, expected 'amp_core.checkpoint/1'$"):
        load(tmp_path / "state.pt")
    torch.save([1], tmp_path / "state.pt")
    with pytest.raises(CheckpointError, match=r"has format 'list', expected"):
        load(tmp_path / "state.pt")


def test_wrappers_are_taken_off_and_a_part_called_module_is_none() -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = nn.Linear(2, 2)

    model = Holder()
    assert unwrapped(model) is model
    compiled = torch.compile(model, backend="eager")
    assert isinstance(compiled, nn.Module)
    assert unwrapped(compiled) is model


def test_another_models_state_is_told_by_its_first_difference() -> None:
    model = nn.Linear(2, 3)
    with pytest.raises(CheckpointError, match=r"it lacks 'bias' and has 'extra': build the model it is of$"):
        refuse_other_model(model, {"weight": torch.zeros(3, 2), "extra": torch.zeros(1)})
    refuse_other_model(model, model.state_dict())
