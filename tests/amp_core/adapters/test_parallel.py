"""Tests of training over several processes: two real ones, started by torchrun, and what one alone does."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from amp_core.device import DeviceUnavailable
from amp_core.parallel import gathered, mean_over_ranks, on_any_rank, total_over_ranks, without_sync, world, wrap

HERE = Path(__file__).parent
PRECISIONS = ("fp32", "bf16", "fp16")
each_way = pytest.mark.parametrize("how", ["ddp", "fsdp2"])


def torchrun(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.run(
        [*launch, str(HERE / script), *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("ranks") / "results.json"
    done = torchrun("ranks.py", str(out))
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text(encoding="utf-8"))


def test_each_rank_knows_its_place(ranks: Any) -> None:
    assert ranks["world"] == [[0, 0, 2, "cpu", True], [1, 1, 2, "cpu", False]]


@each_way
def test_replicas_start_from_the_first_ranks_weights(ranks: Any, how: str) -> None:
    assert ranks["replicas_start_from_the_first_ranks_weights"][how] == {"same": True, "distance": 0.0}


@each_way
@pytest.mark.parametrize("name", PRECISIONS)
def test_an_overflow_on_one_rank_skips_the_step_on_both(ranks: Any, how: str, name: str) -> None:
    found = ranks["an_overflow_on_one_rank"][how][name]
    assert found["skipped"]
    assert found["same"]  # parameters, averages, loss scale and learning rate, to the bit
    assert found["norm_is_plain"]
    overflows = 4 - found["applied"]
    assert overflows >= 1
    assert found["scale"] == (2.0 ** (16 - overflows) if name == "fp16" else 1.0)
    assert found["lr"] == pytest.approx(0.02 * 0.9 ** found["applied"])


@each_way
def test_a_window_of_four_without_exchange_is_one_big_batch(ranks: Any, how: str) -> None:
    found = ranks["a_window_of_four_is_one_big_batch"][how]
    assert max(found.values()) < 1e-6


@each_way
def test_gradients_are_exchanged_once_a_window(ranks: Any, how: str) -> None:
    found = ranks["gradients_are_exchanged_once_a_window"][how]
    assert found["held_back"]
    assert found["same"]
    assert found["error"] < 1e-6


@each_way
def test_ragged_windows_weighed_by_size_are_the_mean_over_the_union(ranks: Any, how: str) -> None:
    found = ranks["ragged_windows_weighed_by_size_are_the_mean_over_the_union"][how]
    assert found["unweighed"] > 1e-4
    assert max(found["distance"], found["loss"]) < 1e-6


@each_way
def test_the_first_rank_saves_what_all_can_load_and_so_can_a_single_process(ranks: Any, how: str) -> None:
    found = ranks["the_first_rank_saves_and_all_load"][how]
    assert found == dict.fromkeys(found, True)


@each_way
def test_a_loop_that_was_killed_goes_on_to_the_same_bits_on_every_rank(ranks: Any, how: str) -> None:
    assert ranks["a_killed_fit_goes_on_bit_for_bit"][how] == {
        "distance": 0.0,
        "applied": 10,
        "files": ["step-00000005.pt", "step-00000010.pt"],
        "own generators": True,
    }


def test_ranks_that_exchange_no_gradients_skip_together_if_they_agree(ranks: Any) -> None:
    found = ranks["ranks_without_an_exchange_skip_together_if_they_agree"]
    assert found == {"agreed": [1, 1], "alone": [0, 1]}


def test_a_total_is_taken_over_the_ranks_that_share_a_model(ranks: Any) -> None:
    found = ranks["totals_are_those_of_the_ranks_that_share_a_model"]
    assert found == {"ddp": [3.0, 2], "fsdp2": [3.0, 2], "plain": [1.0, 1]}


def test_lightning_trains_replicas_as_the_train_step_does(ranks: Any) -> None:
    found = ranks["lightning_trains_replicas"]
    assert found == {"same": True, "applied": 3, "skipped": 1, "as_step": True}


def test_a_rank_that_fails_takes_the_others_down_and_says_which_it_was() -> None:
    done = torchrun("failing.py")
    assert done.returncode == 1
    assert "ValueError: a batch that nobody can read" in done.stderr
    assert "on rank 1 of 2" in done.stderr


def test_one_process_alone_is_a_world_of_one() -> None:
    model = nn.Linear(2, 2)
    total = torch.tensor(3.0)
    with world("cpu") as rank:
        assert (rank.index, rank.local, rank.size, rank.first) == (0, 0, 1, True)
        assert rank.device == torch.device("cpu")
        assert wrap(model, "ddp") is wrap(model, "fsdp2") is model
        assert total_over_ranks(model, total) == (total, 1)
        assert mean_over_ranks(total) is total
        assert on_any_rank(total) is total
        with without_sync(model):
            model(torch.ones(1, 2)).sum().backward()
    assert not torch.distributed.is_initialized()
    assert model.weight.grad is not None


def test_a_state_without_shards_is_gathered_unchanged() -> None:
    state: Any = {"a": [torch.ones(2), 3], "b": (None, "text"), "c": {0: torch.zeros(1)}}
    assert str(gathered(state)) == str(state)
    assert gathered(state)["a"][0] is state["a"][0]


def test_an_error_in_a_world_of_one_is_left_as_it_is() -> None:
    with pytest.raises(ValueError, match="as it is") as caught, world("cpu"):
        raise ValueError("as it is")
    assert not hasattr(caught.value, "__notes__")  # alone there is nothing to tell apart


def test_a_wrong_way_or_block_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^unknown way to wrap a model 'fsdp': expected one of ddp, fsdp2$"):
        wrap(nn.Linear(2, 2), "fsdp")
    with pytest.raises(ValueError, match=r"^the model has no module of type Conv2d: name the type of its repeated"):
        wrap(nn.Linear(2, 2), "fsdp2", blocks=(nn.Conv2d,))


@pytest.mark.parametrize("lacking", ["RANK", "LOCAL_RANK", "WORLD_SIZE"])
def test_an_incomplete_environment_is_refused(monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    for name in {"RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"} - {lacking}:
        monkeypatch.setenv(name, "1")
    with pytest.raises(ValueError, match=rf"^torchrun's environment is incomplete: '{lacking}': start"), world("cpu"):
        pass


def test_a_device_that_is_not_there_is_refused_before_anybody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "1"}.items():
        monkeypatch.setenv(name, value)
    with (
        pytest.raises(ValueError, match=r"^expected a device type for 2 ranks, found 'cpu:0': pass 'cpu'"),
        world("cpu:0"),
    ):
        pass
    with pytest.raises(DeviceUnavailable, match=r"^unknown device 'gpu'"), world("gpu"):
        pass
