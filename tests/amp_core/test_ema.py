"""Tests of the moving average of the parameters."""

import math

import pytest
import torch
from torch import Tensor, nn

from amp_core.ema import Ema

GOOD, SKIPPED = torch.zeros(()), torch.ones(())


def two() -> list[nn.Parameter]:
    return [nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor(3.0))]


@pytest.mark.parametrize(("found_inf", "expected"), [(GOOD, [2.0, 3.0]), (SKIPPED, [1.0, 2.0])])
def test_the_average_moves_unless_the_step_was_skipped(found_inf: Tensor, expected: list[float]) -> None:
    params = two()
    ema = Ema(params, 0.75)
    with torch.no_grad():
        params[0].add_(4.0)
    ema.update(found_inf)
    assert [average.tolist() for average in ema.averages] == [expected, 3.0]


def test_the_averages_stand_in_for_the_parameters_and_give_way_again_also_after_an_error() -> None:
    params = two()
    ema = Ema(params, 0.5)
    with torch.no_grad():
        params[1].add_(2.0)
    ema.update(GOOD)
    with pytest.raises(KeyError), ema.swapped_in():
        assert params[1].item() == 4.0
        raise KeyError
    assert params[1].item() == 5.0
    assert ema.averages[1].item() == 4.0


def test_buffers_are_averaged_but_counters_are_not() -> None:
    model = nn.BatchNorm1d(2)
    ema = Ema([*model.parameters(), *model.buffers()], 0.5)
    model(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    ema.update(GOOD)
    with ema.swapped_in():
        assert model.running_mean is not None
        torch.testing.assert_close(model.running_mean, torch.tensor([0.1, 0.2]))
    torch.testing.assert_close(model.running_mean, torch.tensor([0.2, 0.4]))


@pytest.mark.parametrize("decay", [1.0, -0.1, math.nan])
def test_a_decay_out_of_range_and_nothing_to_average_are_refused(decay: float) -> None:
    with pytest.raises(ValueError, match=rf"^decay must be at least 0 and below 1, found {decay!r}$"):
        Ema(two(), decay)
    with pytest.raises(ValueError, match="there is no parameter to average"):
        Ema([], 0.9)


def test_averages_of_another_model_are_refused_and_change_nothing() -> None:
    ema = Ema(two(), 0.5)
    with pytest.raises(ValueError, match="the averages are of another model: expected 2 tensors"):
        ema.load_state_dict({"averages": [torch.zeros(2)]})
    assert ema.averages[0].tolist() == [1.0, 2.0]
