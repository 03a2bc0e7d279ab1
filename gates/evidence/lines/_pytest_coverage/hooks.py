"""A pytest plugin that notes which test runs which lines of the implementation, by the library `coverage`.

It stands alone, as the witness does, and changes nothing about the run: where `coverage` is not there, or the project
traces itself, it stands down and says why. Lines that run in a fixture wider than a function, at import or between
tests are noted as such, for no test can claim them. Other processes are not followed, for that would change them; that
a test started some is noted.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from .lines import Lines

_lines = Lines()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    _lines.start(early_config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _lines.switch(f"test:{item.nodeid}")
    try:
        return (yield)
    finally:
        _lines.switch(before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: "pytest.FixtureDef[Any]") -> Iterator[None]:
    before = _lines.context
    try:
        if fixturedef.scope != "function":
            _lines.switch(f"fixture:{fixturedef.argname}")
        return (yield)
    finally:
        _lines.switch(before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Iterator[None]:
    _lines.switch("")
    return (yield)


def pytest_unconfigure() -> None:
    _lines.end()
