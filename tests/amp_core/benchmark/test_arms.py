"""Tests of which arms a device is measured in."""

import pytest

from amp_core.benchmark.arms import accept, lean_arms, precision_of, precisions_for, timed_arms
from amp_core.device import DeviceFacts

AMPERE = DeviceFacts("cuda", "a GPU with TF32", ("bf16", "fp16", "sm_80", "tf32"))
TURING = DeviceFacts("cuda", "a GPU without", ("fp16", "sm_75"))
CPU = DeviceFacts("cpu", "a CPU", ("avx2",))


@pytest.mark.parametrize(
    ("facts", "timed", "lean"),
    [
        (AMPERE, ("fp32", "tf32", "bf16", "fp16"), ("bf16_lean", "fp16_lean")),
        (TURING, ("fp32", "fp16"), ("fp16_lean",)),
        (CPU, ("fp32", "bf16"), ("bf16_lean",)),
    ],
    ids=lambda value: value.name if isinstance(value, DeviceFacts) else "",
)
def test_what_is_timed_is_native(facts: DeviceFacts, timed: tuple[str, ...], lean: tuple[str, ...]) -> None:
    assert precisions_for(facts) == timed
    assert lean_arms(timed) == lean


def test_a_16_bit_precision_has_its_step_by_hand_beside_it() -> None:
    assert timed_arms(("fp32", "tf32", "bf16", "fp16")) == (
        "fp32", "tf32", "bf16", "bf16_by_hand", "fp16", "fp16_by_hand",
    )  # fmt: skip


def test_an_arm_by_hand_computes_as_its_precision() -> None:
    assert precision_of("fp16_by_hand", "cpu") == precision_of("fp16_lean", "cpu") == precision_of("fp16", "cpu")


def test_precisions_are_accepted_by_any_name_and_the_baseline_comes_first() -> None:
    assert accept(["16-mixed", "fp32"], CPU) == ("fp32", "fp16")
    assert accept(["tf32", "fp32"], AMPERE) == ("fp32", "tf32")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["fp32", "fp16", "16"], "expected each precision once, found 'fp32, fp16, fp16'"),
        (["bf16"], "expected the baseline 'fp32' among the precisions, found 'bf16'"),
        (["fp32", "tf32"], "a CPU has no TF32, leave 'tf32' out"),
        (["fp32", "fp61"], "unknown precision 'fp61'"),
    ],
)
def test_precisions_that_cannot_be_compared_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        accept(names, CPU)
