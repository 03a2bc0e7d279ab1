"""The keys and types that the model of a task knows at a place of its file."""

import pytest

from gates.task.loading import is_typed, known_keys

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
    known = known_keys(place)
    assert KEYS[place] in known
    assert "line" not in known
    assert ("id" in known) == (place in {(), ("criteria", 0)})


@pytest.mark.parametrize(
    ("place", "typed"),
    [
        (("entry_points", 0, "args", 0), True),
        (("calculations", 0, "table", 0, "expected"), True),
        (("calculations", 0, "table", 0, "kwargs", "line", "x", 0), True),
        (("calculations", 0, "call"), False),
        (("criteria", 0, "args"), False),
        (("no_such", 0, "args", 0), False),
        (("args",), False),
    ],
)
def test_only_where_the_model_says_json_values_are_typed_as_json(place: tuple[str | int, ...], typed: bool) -> None:
    assert is_typed(place) is typed
