"""The keys and types that the model of a task knows at a place of its file."""

from pathlib import Path

import pytest
from building import written

from gates.task.loading import load
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


ONCE = """\
id: T1
title: Doubling
implementation: [pkg]
criteria: [{id: AC1, text: Double}]
calculations:
  - call: "pkg.core:double"
    table:
      - {args: [1e-3, yes, "2", null], kwargs: {line: 3}, expected: [true, {a: 0x1}]}
"""


def test_only_where_the_model_says_json_values_are_typed_as_json(tmp_path: Path) -> None:
    path = written(tmp_path, {"T1.yaml": ONCE}) / "T1.yaml"
    (row,) = load(path, tmp_path).model_dump()["calculations"][0]["table"]
    assert (row["args"], row["kwargs"], row["expected"]) == (
        (1e-3, "yes", "2", None),
        {"line": 3},
        [True, {"a": "0x1"}],
    )
