"""Tests of training as a whole: precision by configuration, fallback, reproducibility, accuracy."""

import dataclasses
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from amp_core.data import draw_chain, loader
from amp_core.model import GPT, GPTConfig
from amp_core.precision import precision_for
from amp_core.scaler import ScaleCollapsed
from amp_core.step import TrainStep
from amp_core.tracking import MemorySink, Tracker
from amp_core.trainer import TrainConfig, TrainResult, build_loaders, evaluate, run_steps, train

CPU = torch.device("cpu")


def a_config(**changes: Any) -> TrainConfig:
    return dataclasses.replace(
        TrainConfig(device="cpu", steps=6, batch_size=8, val_sequences=64, log_every=4), **changes
    )


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
        (None, "fp16", "fp16", torch.float16),
        (True, "bf16", "bf16", torch.bfloat16),
        (True, "fp16", "fp16", torch.float16),
        (False, None, "fp32", torch.float32),
        (False, "fp16", "fp32", torch.float32),
        (False, "bf16", "fp32", torch.float32),
    ],
)
def test_the_configuration_decides_what_dtype_really_runs(
    use_amp: bool | None, precision: str | None, name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, dtypes = forward_dtypes(a_config(use_amp=use_amp, precision=precision), monkeypatch)
    assert result.precision == name
    assert dtypes == {dtype}
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
    plain = train(a_config(use_amp=False))
    assert result.history == plain.history


@pytest.mark.criterion("T035/AC6")
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_16_bit_training_reaches_the_accuracy_of_fp32(name: str) -> None:
    config = TrainConfig(device="cpu", steps=60, seed=11)
    reference, candidate = (train(dataclasses.replace(config, precision=each)) for each in ("fp32", name))
    assert reference.val_accuracy > 0.8 * reference.best_accuracy > 2 * reference.chance_accuracy
    assert abs(candidate.val_accuracy - reference.val_accuracy) < 0.01
    assert abs(candidate.val_loss - reference.val_loss) < 0.01
    assert candidate.applied_steps == 60
    assert candidate.history != reference.history  # it did compute otherwise


def test_the_same_seed_gives_the_same_run_whatever_the_global_generator() -> None:
    torch.manual_seed(1)
    first = train(a_config(seed=5))
    torch.manual_seed(2)
    assert train(a_config(seed=5)) == first
    assert train(a_config(seed=6)).history != first.history


def test_training_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    train(a_config(steps=1))
    assert torch.equal(torch.rand(3), expected)


def test_validation_is_another_draw_than_training() -> None:
    config = a_config(train_sequences=64)  # equally many, so that equal generators would draw alike
    chain = draw_chain(16, sharpness=3.0, generator=torch.Generator().manual_seed(0))
    training, validation = (batches.dataset.tensors[0] for batches in build_loaders(config, chain, CPU))  # type: ignore[attr-defined]
    assert (len(training), len(validation)) == (64, 64)
    shared = {tuple(row) for row in training.tolist()} & {tuple(row) for row in validation.tolist()}
    assert not shared


def test_precisions_start_alike() -> None:
    losses = [train(a_config(precision=name, steps=1)).train_loss for name in ("fp32", "bf16", "fp16")]
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-3)


def test_history_has_every_step_with_its_learning_rate() -> None:
    result = train(a_config(steps=10, lr=0.5))
    assert [record.step for record in result.history] == list(range(10))
    assert result.history[1].lr == pytest.approx(0.5)  # one step of warm-up, then the peak
    assert result.history[-1].lr < 0.1
    assert result.train_loss == result.history[-1].loss


def test_accumulation_counts_optimizer_steps_and_averages_the_loss() -> None:
    result = train(a_config(accumulate=3, steps=4))
    assert result.applied_steps == len(result.history) == 4
    single = train(a_config(batch_size=24, steps=4))
    assert result.history[0].loss == pytest.approx(single.history[0].loss, rel=1e-5)
    assert result.history[3].loss == pytest.approx(single.history[3].loss, rel=1e-3)


def test_the_same_sinks_receive_what_the_history_holds() -> None:
    sink = MemorySink()
    assert train(a_config(), [sink]).history == tuple(sink.records)


def broken_step(name: str) -> TrainStep:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    return TrainStep(model, optimizer, precision_for(name, "cpu"), lambda module, batch: module(batch[0]).sum())


@pytest.mark.parametrize("name", ["fp32", "fp16"])
def test_data_that_is_never_finite_stops_training_at_a_flush(name: str) -> None:
    step, batches = broken_step(name), iter(lambda: (torch.full((1, 1), float("nan")),), None)
    with pytest.raises(ScaleCollapsed, match="the last 60 steps had non-finite gradients"), Tracker(30, []) as tracker:
        run_steps(step, batches, tracker, 1000, CPU)
    assert tracker.step == 60
    assert all(param.isfinite().all() for param in step.model.parameters())


class Fixed(nn.Module):
    """A model whose logits always favour one token; it notes how it was run."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bool, bool]] = []

    def forward(self, tokens: Tensor) -> Tensor:
        self.seen.append((self.training, torch.is_inference_mode_enabled()))
        return torch.tensor([0.0, 5.0, 0.0], dtype=torch.float16).expand(*tokens.shape, 3)


def test_evaluation_counts_right_predictions_in_eval_and_inference_mode() -> None:
    model = Fixed().train()
    data = TensorDataset(torch.tensor([[0, 1, 1], [0, 1, 2], [0, 0, 1]]))
    result = evaluate(model, loader(data, batch_size=2, device=CPU), CPU, precision_for("fp32", "cpu"))
    assert (result.tokens, result.accuracy) == (6, 4 / 6)
    log_sum = torch.tensor([0.0, 5.0, 0.0]).logsumexp(0).item()
    assert result.loss == pytest.approx(log_sum - 5.0 * 4 / 6, rel=1e-5)
    assert model.seen == [(False, True)] * 2
    assert model.training


def test_evaluation_without_a_batch_is_refused() -> None:
    empty: Any = []
    with pytest.raises(ValueError, match="nothing to evaluate: the loader has no batch"):
        evaluate(Fixed(), empty, CPU, precision_for("fp32", "cpu"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, found 0"),
        ({"seed": -1}, "seed must be at least 0, found -1"),
        ({"lr": float("nan")}, "lr must be a positive number, found nan"),
        ({"batch_size": 5000}, "the dataset has 1024 sequences, too few for a batch of 5000: lower batch_size"),
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


def test_worker_processes_do_not_change_the_run() -> None:
    assert train(a_config(workers=1)).history == train(a_config()).history


def test_another_model_can_be_trained() -> None:
    shape = GPTConfig(vocab_size=8, context=4, layers=2, heads=1, width=8)
    assert GPT(shape).head.out_features == 8
    assert train(a_config(model=shape)).applied_steps == 6
