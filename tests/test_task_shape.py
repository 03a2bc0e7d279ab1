"""The keys and types that the model of a task knows at a place of its file."""

import pytest

from gates.task.task import task_model
from gates.task.yaml_source import known_keys

KEYS = {
    (): "entry_points",
    ("criteria", 0): "level",
    ("criteria", 0, "code", 1): "symbol",
    ("criteria", 0, "measures", 0): "from",
    ("calculations", 0, "table", 3): "tolerance",
    ("calculations", 0, "instance"): "kwargs",
    ("edge_cases", 0): "raises",
}


@pytest.mark.parametrize("place", KEYS, ids=str)
def test_keys_are_those_of_the_model_there(place: tuple[str | int, ...]) -> None:
    known = known_keys(task_model(), place)
    assert KEYS[place] in known
    assert "line" not in known
    assert ("id" in known) == (place in {(), ("criteria", 0)})
