"""Tests of the run through forced overflows."""

import dataclasses
import warnings

import pytest
import torch
from workloads import SMALL

from benchmarks.overflows import HostRead, Overflows, take_overflowing_steps, without_host_reads

CPU = torch.device("cpu")


@pytest.mark.parametrize(("steps", "forced"), [(41, 4), (40, 3)])
def test_every_forced_overflow_is_skipped_and_every_step_counted(steps: int, forced: int) -> None:
    seen = take_overflowing_steps(SMALL, CPU, steps=steps, every=10, growth_interval=100)
    assert (seen.steps, seen.forced, seen.skipped, seen.applied) == (steps, forced, forced, steps - forced)
    assert seen.scale == 2.0**16 / 2.0**forced
    assert seen.watched_by == "amp_audit.host_reads"
    assert seen.held


GOOD = Overflows(40, 4, 36, 4, 1.0, 2.0, 1.0, "")


@pytest.mark.parametrize(
    "wrong",
    [
        dataclasses.replace(GOOD, skipped=3),
        dataclasses.replace(GOOD, skipped=3, applied=37),
        dataclasses.replace(GOOD, last_loss=float("nan")),
        dataclasses.replace(GOOD, last_loss=3.0),
    ],
    ids=["a step is lost", "an overflow was applied", "not a number", "grew worse"],
)
def test_a_run_that_lost_a_step_or_learned_nothing_did_not_hold(wrong: Overflows) -> None:
    assert GOOD.held
    assert not wrong.held


def test_a_host_read_is_found() -> None:
    scalar = torch.ones(())
    with pytest.raises(HostRead, match=r"^expected no host read, found 1, the first is "):
        without_host_reads(lambda: print(scalar.item()), CPU)


def test_on_a_gpu_torchs_own_watch_is_set_and_taken_back_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[str] = []

    def set_mode(mode: str) -> None:
        if mode == "error":
            warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=2)
        modes.append(mode)

    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", set_mode)
    assert without_host_reads(lambda: modes.append("work"), torch.device("cuda")).startswith("torch.cuda")
    assert modes == ["error", "work", "default"]
    with pytest.raises(ZeroDivisionError):
        without_host_reads(lambda: print(1 // 0), torch.device("cuda"))
    assert modes[-2:] == ["error", "default"]
