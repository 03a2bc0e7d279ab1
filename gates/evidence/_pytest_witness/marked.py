"""The criteria that the markers of a test name."""

from collections.abc import Iterator

import pytest


def criteria_of(item: pytest.Item) -> list[str]:
    """Return what the markers `criterion` of a test name, by place or as `id`; a `reason` names none."""
    return sorted({str(name) for mark in item.iter_markers("criterion") for name in _named_by(mark)})


def _named_by(mark: pytest.Mark) -> Iterator[object]:
    yield from mark.args
    if "id" in mark.kwargs:
        yield mark.kwargs["id"]
