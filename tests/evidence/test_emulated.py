"""Tests that skip for want of CUDA, run on an emulated device."""

from pathlib import Path

import pytest
from building import a_context, a_task, evidence, pytest_options, written

from gates.check import EvidenceSet
from gates.errors import EvidenceUnavailable
from gates.evidence.emulated import Emulated
from gates.evidence.pytest_run import PytestRun
from gates.model import Level, Outcome
from gates.stages import _emulated

TESTS = """\
import pytest
import torch

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@needs_cuda
def test_trains():
    model = torch.nn.Linear(4, 2).cuda()
    inputs = torch.randn(8, 4, device="cuda")
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cuda")
    with torch.autocast("cuda"):
        loss = model(inputs.to("cuda:0", non_blocking=True)).float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    torch.cuda.synchronize()
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs), batch_size=4, pin_memory=True)
    assert len([batch for batch in batches]) == 2


@needs_cuda
def test_crashes():
    torch.nn.Linear(4, 2).cuda()(torch.zeros(3, 5, device="cuda"))


@needs_cuda
def test_measures():
    assert torch.cuda.max_memory_allocated() > 0


@needs_cuda
def test_times():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    assert start.elapsed_time(end) > 0


@needs_cuda
def test_device():
    assert torch.zeros(1, device="cuda").device.type == "cuda"


@pytest.mark.skip(reason="not today")
def test_other():
    raise ValueError


def test_plain():
    assert torch.zeros(1).item() == 0


@needs_cuda
def test_other_ways_to_say_it():
    generator = torch.Generator(device="cuda").manual_seed(1)
    assert isinstance(generator, torch.Generator)
    inputs = torch.randn(2, 4, generator=generator, device=0).to(0)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda")
        torch.nn.Linear(4, 2).to(0)(inputs).record_stream(stream)
    torch.cuda.nvtx.range_push("x")
    torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    assert torch.cuda.get_device_properties(0).major


@needs_cuda
def test_properties():
    assert torch.cuda.get_device_properties(0).total_memory


@needs_cuda
def test_wants_more():
    raise RuntimeError("CUDA error: no kernel image is available")


@needs_cuda
def test_name_with_a_typo():
    torch.nn.Linear(4, 2).cuda().to_cuda
"""
TASK = a_task(tests=["tests"], emulate=["cuda"])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    files = {"pyproject.toml": pytest_options(), "pkg/__init__.py": "", "tests/test_cuda.py": TESTS}
    context = a_context(written(tmp_path_factory.mktemp("emulated") / "project", files))
    PytestRun.collect(TASK, context)
    return Emulated.collect(TASK, context)


def test_each_test_ends_as_it_would(seen: Emulated) -> None:
    ended = {test.id.partition("::")[2]: test.ended for test in seen.tests}
    assert ended == {
        "test_trains": "passed",
        "test_crashes": "crashed",
        "test_measures": "not measured",
        "test_times": "not measured",
        "test_device": "differs",
        "test_other_ways_to_say_it": "passed",
        "test_properties": "not measured",
        "test_wants_more": "not emulated",
        "test_name_with_a_typo": "crashed",
    }


def test_crash_is_a_warning_at_its_line(seen: Emulated) -> None:
    finding, _ = _emulated.judge(TASK, evidence(seen))
    assert (finding.outcome, finding.level, finding.blocks) == (Outcome.FAILED, Level.ADVISORY, False)
    assert (str(finding.location), finding.criterion) == ("tests/test_cuda.py:24", None)
    assert "emulated device" in finding.actual


def test_what_passes_satisfies_nothing(seen: Emulated) -> None:
    good = seen.model_copy(update={"tests": tuple(test for test in seen.tests if test.ended == "passed")})
    (finding,) = _emulated.judge(TASK, evidence(good))
    assert finding.outcome is Outcome.UNKNOWN
    assert not finding.leaves_open
    assert "2 of 9 tests" in finding.message


def test_report_says_that_the_device_was_emulated(seen: Emulated) -> None:
    (section,) = _emulated.describe(TASK, evidence(seen))
    assert all("emulated device" in row[1] for row in section.rows)


def test_nothing_is_planned_where_nothing_is_asked_for(tmp_path: Path) -> None:
    assert list(_emulated.plan(a_task())) == []
    assert list(_emulated.judge(a_task(), EvidenceSet())) == []
    with pytest.raises(EvidenceUnavailable, match="names no device"):
        Emulated.collect(a_task(), a_context(written(tmp_path / "project", {"x.py": ""})))


def test_without_a_test_run_it_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnavailable, match="left no report"):
        Emulated.collect(TASK, a_context(written(tmp_path / "project", {"x.py": ""})))
    (finding,) = _emulated.judge(TASK, EvidenceSet())
    assert finding.outcome is Outcome.UNKNOWN


def test_where_nothing_was_skipped_it_does_not_apply() -> None:
    (finding,) = _emulated.judge(TASK, evidence(Emulated(how="x", process=None, asked=(), tests=())))
    assert finding.outcome is Outcome.NOT_APPLICABLE
