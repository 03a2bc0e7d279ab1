"""Tests of training as a whole: precision by configuration, fallback, reproducibility, accuracy."""

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from amp_core.checkpoint import CheckpointError
from amp_core.tracking import Flush
from examples.t035.trainer import TrainConfig, TrainResult, build_model, digest, train

CPU = torch.device("cpu")
SMALL = TrainConfig(device="cpu", steps=6, batch_size=8, val_sequences=64, log_every=4)


def a_config(**changes: Any) -> TrainConfig:
    return dataclasses.replace(SMALL, **changes)


def forward_dtypes(config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> tuple[TrainResult, set[torch.dtype]]:
    """Train, and return the dtypes that the linear layers really computed in."""
    dtypes: set[torch.dtype] = set()

    def hook(module: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(module, nn.Linear):
            dtypes.add(output.dtype)

    handle = nn.modules.module.register_module_forward_hook(hook)
    try:
        return train(config), dtypes
    finally:
        handle.remove()


@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize(
    ("use_amp", "precision", "name", "dtype"),
    [
        (None, None, "fp32", torch.float32),
        (None, "bf16", "bf16", torch.bfloat16),
        (True, "fp16", "fp16", torch.float16),
        (False, "fp16", "fp32", torch.float32),
    ],
)
def test_the_configuration_decides_what_dtype_really_runs(
    use_amp: bool | None, precision: str | None, name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, dtypes = forward_dtypes(a_config(use_amp=use_amp, precision=precision), monkeypatch)
    assert result.precision == name
    assert dtypes == {dtype}
    assert result.observed_dtypes == (str(dtype).removeprefix("torch."),)
    assert result.loss_scale == (65536.0 if name == "fp16" else 1.0)


@pytest.mark.criterion("T035/AC8")
def test_use_amp_on_a_cpu_trains_in_fp32_to_the_end_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result, dtypes = forward_dtypes(a_config(use_amp=True), monkeypatch)
    assert [str(warning.message) for warning in caught] == [result.reason]
    assert "falls back to fp32" in result.reason
    assert result.warnings == (result.reason,)
    assert dtypes == {torch.float32}
    assert (result.precision, result.applied_steps, result.skipped_steps) == ("fp32", 6, 0)
    assert result.history == train(a_config(use_amp=False)).history


@pytest.mark.criterion("T035/AC6")
def test_16_bit_training_reaches_the_accuracy_of_fp32() -> None:
    reference, *candidates = (
        train(TrainConfig(device="cpu", steps=30, seed=11, precision=name)) for name in ("fp32", "bf16", "fp16")
    )
    assert reference.val_accuracy > 0.8 * reference.best_accuracy > 2 * reference.chance_accuracy
    for candidate in candidates:
        assert abs(candidate.val_accuracy - reference.val_accuracy) < 0.01
        assert abs(candidate.val_loss - reference.val_loss) < 0.01
        assert candidate.applied_steps == 30
        assert candidate.history != reference.history  # it did compute otherwise


def test_the_seed_alone_decides_a_run_which_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = train(a_config(seed=5))
    assert torch.equal(torch.rand(3), expected)
    assert train(a_config(seed=5)) == first
    assert train(a_config(seed=5, workers=1)).history == first.history
    assert train(a_config(seed=6)).history != first.history


@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, found 0"),
        ({"seed": -1}, "seed must be at least 0, found -1"),
        ({"seed": 2**62}, "seed must be below 2**62"),
        ({"lr": float("nan")}, "lr must be a positive number, found nan"),
        ({"lr": float("inf")}, "lr must be a positive number, found inf"),
        ({"lr": 0.0}, "lr must be a positive number, found 0.0"),
        ({"ema_decay": 1.0}, "ema_decay must be at least 0 and below 1, found 1.0"),
        ({"batch_size": 5000}, "the dataset has 1024 samples, too few for a batch of 5000: lower batch_size"),
        ({"precision": "fp61"}, "unknown precision 'fp61'"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"max_grad_norm": -1.0}, "max_grad_norm must be a positive number or None"),
    ],
)
def test_wrong_configurations_are_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        train(a_config(**changes))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_digest_tells_one_bit_from_another() -> None:
    one, other = (build_model(a_config(), CPU) for _ in range(2))
    assert digest(one) == digest(other)
    with torch.no_grad():
        other.head.weight[0, 0] = torch.nextafter(other.head.weight[0, 0], torch.tensor(9.0))
    assert digest(one) != digest(other)
    assert digest(one) != digest(build_model(a_config(seed=1), CPU))


@pytest.mark.parametrize(
    ("name", "stop", "workers"),
    [("fp32", 4, 0), ("bf16", 6, 0), ("fp16", 4, 0), ("fp16", 6, 1)],
    ids=["in an epoch", "at its end", "in an epoch and scaled", "workers"],
)
def test_a_resumed_run_ends_with_the_same_bits(name: str, stop: int, workers: int, tmp_path: Path) -> None:
    config = a_config(
        precision=name, steps=10, train_sequences=48, accumulate=2, ema_decay=0.9, validate_every=4, workers=workers
    )  # three steps an epoch, the third in its middle
    through = train(config)
    with pytest.raises(Interrupted):
        train(config, [InterruptAt(stop)], checkpoints=tmp_path, save_every=2)
    resumed = train(config, checkpoints=tmp_path, save_every=2, resume=True)
    assert resumed.history == through.history[stop:]
    assert dataclasses.replace(resumed, history=through.history) == through


class Interrupted(BaseException):
    """What a test raises in the middle of a run; no part of the product catches it."""


class InterruptAt:
    """A sink that interrupts the run once the checkpoint of a step has been asked for."""

    def __init__(self, step: int) -> None:
        self.step = step

    def write(self, flush: Flush) -> None:
        if flush.steps[-1].step >= self.step:
            raise Interrupted

    def close(self) -> None:
        """Nothing is held."""


def test_the_folder_of_a_finished_run_is_not_overwritten_unasked_and_resumes_that_run_alone(tmp_path: Path) -> None:
    done = train(a_config(), checkpoints=tmp_path, save_every=3)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CheckpointError, match=r"already holds step-00000006\.pt: resume, or choose another folder$"):
        train(a_config(), checkpoints=tmp_path)
    with pytest.raises(CheckpointError, match=r"is of a run with lr=0\.01, expected 0\.02: resume with the same"):
        train(a_config(lr=0.02), checkpoints=tmp_path, resume=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    again = train(a_config(), checkpoints=tmp_path, save_every=3, resume=True)
    assert (again.digest, again.val_loss, again.train_loss, again.history) == (done.digest, done.val_loss, None, ())


def test_a_run_goes_on_in_another_precision_with_a_warning(tmp_path: Path) -> None:
    begun = a_config(precision="fp16", steps=10)
    with pytest.raises(Interrupted):
        train(begun, [InterruptAt(6)], checkpoints=tmp_path, save_every=6)
    with pytest.warns(UserWarning, match="going on in bf16 from a checkpoint in fp16: the bits will differ"):
        result = train(dataclasses.replace(begun, precision="bf16"), checkpoints=tmp_path, resume=True)
    assert (result.precision, result.applied_steps, result.loss_scale) == ("bf16", 10, 1.0)
