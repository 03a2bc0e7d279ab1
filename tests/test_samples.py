"""The samples file: what cannot be believed is refused in one line that says where and what."""

import json
from typing import Any

import pytest
from building import OLD, raw_samples
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.measuring.samples import BadSamples, read


def why(text: str) -> str:
    with pytest.raises(BadSamples) as caught:
        read(text)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def with_values(*values: object) -> str:
    return json.dumps(raw_samples(old=list(values), new=[1.0] * len(values)))


def test_good_file_is_read_as_it_was_written() -> None:
    samples = read(json.dumps(raw_samples()))
    assert samples.device.type == "cpu"
    assert samples.metrics["step_time_s"].arms["old"][:2] == tuple(OLD[:2])


BEYOND = "metrics.step_time_s.arms.old"
NONE = {token: f"holds {token}, expected finite numbers" for token in ("NaN", "Infinity", "-Infinity")}
NUMBERS = {**NONE, "1e999": BEYOND, "-1e999": BEYOND, "1" + "0" * 400: BEYOND}


@pytest.mark.parametrize("token", NUMBERS)
def test_number_that_is_none_or_beyond_all_bounds_is_refused(token: str) -> None:
    assert why(with_values(1.0, 7.5).replace("7.5", token)).startswith(NUMBERS[token])


def test_arms_without_a_sample_or_of_unequal_pairs_are_refused() -> None:
    assert f"{BEYOND}: tuple should have at least 1 item" in why(with_values())
    assert "different numbers of samples" in why(json.dumps(raw_samples(old=[1.0, 2.0], new=[1.0])))


@pytest.mark.parametrize("key", ["schema", "device", "metrics", "unit", "direction", "paired", "arms"])
def test_missing_key_is_named(key: str) -> None:
    raw = raw_samples()
    holder, place = (raw, key) if key in raw else (raw["metrics"]["step_time_s"], f"metrics.step_time_s.{key}")
    del holder[key]
    assert why(json.dumps(raw)).startswith(place)


@pytest.mark.parametrize("value", [0, -0.0, -1.5])
def test_time_of_nothing_or_less_is_refused(value: float) -> None:
    message = why(with_values(1.0, value))
    assert "arm 'old' sample 1 is" in message
    assert message.endswith("expected above 0")


def test_accuracy_of_zero_is_no_fault() -> None:
    raw = raw_samples(old=[0.0], new=[-1.0])
    raw["metrics"]["step_time_s"]["unit"] = "ratio"
    assert read(json.dumps(raw)).metrics["step_time_s"].arms["new"] == (-1.0,)


@pytest.mark.parametrize("bad", [["1", "2"], [None], [[1.0]], [{"s": 1.0}], [True, False], "12", {"0": 1.0}, 3.0])
def test_samples_that_are_not_numbers_are_refused(bad: Any) -> None:
    raw = raw_samples()
    raw["metrics"]["step_time_s"]["arms"] = {"old": bad, "new": bad}
    assert "arms" in why(json.dumps(raw))


OTHER = [{"schema": "gates.samples/2"}, {"schema": 1}, {"speedup": 1.72}, {"metrics": {}}, {"metrics": []}]


@pytest.mark.parametrize("change", [*OTHER, {"device": "cuda"}, {"device": {"type": "", "name": "x"}}], ids=str)
def test_other_form_is_refused(change: dict[str, Any]) -> None:
    assert why(json.dumps({**raw_samples(), **change})).startswith(next(iter(change)))


@pytest.mark.parametrize("text", ["", " ", "null", "[]", "3", '"x"', "{}", "\ufeff{}", "{} {}", "{'a': 1}"])
def test_what_is_no_samples_file_is_refused(text: str) -> None:
    assert why(text)


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"metrics":{"m":{"arms":{"a":['])
def test_nesting_beyond_sense_is_refused(opening: str) -> None:
    assert why(opening * 100_000)


@given(st.data())
def test_file_cut_short_anywhere_is_refused(data: st.DataObject) -> None:
    text = json.dumps(raw_samples())
    assert why(text[: data.draw(st.integers(0, len(text) - 1))])


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=8,
    )
)
def test_nothing_but_bad_samples_is_ever_raised(value: object) -> None:
    assert why(json.dumps(value))
    assert why(json.dumps({**raw_samples(), "metrics": {"m": value}}))
