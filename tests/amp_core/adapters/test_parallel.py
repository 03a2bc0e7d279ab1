"""Tests of training over several processes: two real ones, started by torchrun's agent, and what one alone does."""

import importlib
import multiprocessing
import re
import runpy
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from amp_core.device import DeviceUnavailable
from amp_core.parallel import mean_over_ranks, on_any_rank, total_over_ranks, without_sync, world, wrap
from amp_core.shards import gathered

HERE = Path(__file__).parent


def launched(folder: Path, script: Path) -> None:
    """Be torchrun: its agent starts two ranks, which need not import torch again as those of its command line would."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(1, 1, nproc_per_node=2, max_restarts=0, start_method="fork", run_id="two")
    config.rdzv_backend, config.rdzv_endpoint = "c10d", "localhost:0"
    elastic_launch(config, told)(folder, script)


def told(*given: Path) -> None:
    """Be a rank, which says how it failed: of several the agent tells of one."""
    try:
        runpy.run_path(str(HERE / "ranks.py"))["main"](*given)
    except BaseException:
        traceback.print_exc()
        raise


@pytest.mark.filterwarnings("ignore:.*fork.*deadlock:DeprecationWarning")  # the agent has threads
def test_two_ranks_train_as_one_until_one_fails(
    tmp_path: Path, recipe: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """One launch, for it costs more than what it checks: `ranks.py` has the checks by name."""
    importlib.import_module("lightning.pytorch")  # before the ranks part
    given = (tmp_path, recipe("recipes/distributed.md"))
    launch = multiprocessing.get_context("fork").Process(target=launched, args=given)
    launch.start()
    launch.join(240)
    launch.kill()  # where it hangs; else it is gone
    out, err = capfd.readouterr()
    assert (tmp_path / "all held").exists(), err
    assert re.fullmatch(r"(\[Gloo\] .*\n)*rank 0 of 2: loss \d\.\d{4}, 10 steps applied\n", out), err
    assert (tmp_path / "last.pt").stat().st_size > 10_000
    assert launch.exitcode == 1
    assert "ValueError: a batch that nobody can read" in err
    assert "on rank 1 of 2" in err


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
