"""Another order of the tests, the same for the same seed: files, then classes in a file, then tests in a class."""

import random
from collections.abc import Callable
from typing import Any

import pytest


def shuffle(items: list[pytest.Item], seed: str) -> None:
    """Shuffle tests in place; those of one file stay together, so that its fixtures are set up once."""
    chance = random.Random(seed)  # noqa: S311  # an order, not a secret
    levels: list[Callable[[pytest.Item], Any]] = [lambda item: item.path, lambda item: getattr(item, "cls", None)]
    before = list(items)
    items[:] = _shuffled(items, levels, chance)
    if items == before:
        items.reverse()


def _shuffled(
    items: list[pytest.Item], levels: list[Callable[[pytest.Item], Any]], chance: random.Random
) -> list[pytest.Item]:
    if not levels:
        chance.shuffle(items)
        return items
    groups: dict[Any, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(levels[0](item), []).append(item)
    parts = list(groups.values())
    chance.shuffle(parts)
    return [item for part in parts for item in _shuffled(part, levels[1:], chance)]
