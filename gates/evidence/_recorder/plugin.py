"""A pytest plugin that runs chosen tests with torch's calls recorded, and tells how each of them ended.

`GATES_RECORDED` says which tests, by path, node id or criterion, and where tests and implementation lie.
"""

import json
import os
from collections.abc import Iterator

import pytest
import torch

from .by_hand import ByHand
from .calls import Calls
from .clearing import Clearing
from .driving import Driving
from .forwards import Forwards
from .given import Given
from .journal import Journal
from .observing import Scene
from .sealing import attached
from .skipping import Skipping
from .steps import Steps

_asked = json.loads(os.environ.pop("GATES_RECORDED"))
_journal = Journal(attached(os.environ.pop("GATES_WITNESS")), _asked["root"])
_scene = Scene(_journal)
_driving = Driving(_journal, _asked["tests"], _asked["implementation"])
_ended: dict[str, str] = {}


def pytest_addoption() -> None:
    """Begin to record before any test file, or conftest, is read."""
    _journal.tell("start", torch=torch.__version__, cuda=torch.cuda.is_available())
    Calls(_scene), Steps(_scene), Forwards(_scene)
    _scene.observers += [Clearing(_scene), ByHand(_scene), Given(_scene), Skipping(_scene)]
    _journal.about = _driving.look


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Run in this process: what workers do would not be heard."""
    config.addinivalue_line("markers", "criterion(id): the acceptance criterion that this test stands for")
    for name, value in (("dist", "no"), ("numprocesses", None), ("tx", [])):
        if hasattr(config.option, name):
            setattr(config.option, name, value)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for."""
    others = [item for item in items if not _is_asked(item)]
    items[:] = [item for item in items if _is_asked(item)]
    if others:
        config.hook.pytest_deselected(items=others)


def _is_asked(item: pytest.Item) -> bool:
    return bool(_criteria(item) & set(_asked["criteria"])) or any(
        item.nodeid == path or item.nodeid.startswith((f"{path}::", f"{path}/", f"{path}["))
        for path in (each.rstrip("/") for each in _asked["chosen"])
    )


def _criteria(item: pytest.Item) -> set[str]:
    return {str(arg) for mark in item.iter_markers("criterion") for arg in mark.args}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tell which test the events between belong to, and how it ended."""
    _scene.forget()
    _journal.tell("test", id=item.nodeid, criteria=sorted(_criteria(item)))
    try:
        return (yield)
    finally:
        _driving.forget()
        _scene.forget()
        _journal.tell("tested", id=item.nodeid, outcome=_ended.pop(item.nodeid, "not run"))


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test ended: by its call, or by what went wrong around it."""
    expected = "xfailed" if report.outcome == "skipped" else "xpassed"
    outcome = expected if hasattr(report, "wasxfail") else report.outcome
    if report.when == "call" or outcome != "passed":
        before = _ended.get(report.nodeid, outcome)
        _ended[report.nodeid] = "failed" if "failed" in {before, outcome} else outcome


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Tell the end."""
    _journal.tell("end")
