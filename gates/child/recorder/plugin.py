"""A pytest plugin that runs chosen tests with torch's calls recorded, and tells how each of them ended.

`GATES_RECORDED` names the file that says which tests, by path, node id or criterion, and where all of it lies.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from types import FrameType

import pytest
import torch
from torch.amp import GradScaler
from torch.optim import Optimizer

from ..asking import read
from ..places import DEEPEST
from .calls import Calls, Forwards
from .effects import ByHand, Clearing, Given, Hidden
from .journal import Journal
from .observing import Observer, Scene, held
from .overflow import Watch, told_of, watched
from .steps import Steps

MOST_ELEMENTS = 2_000_000


class Skipping(Observer):
    """Watches each step that overflows by itself; it is told of after the scaler's update, or where none comes."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._watches: dict[int, Watch] = {}

    def before_step(self, optimizer: Optimizer) -> None:
        """Take down what a step that overflows must not change."""
        scaler = self._scene.here.scaler
        if scaler is None or not scaler.is_enabled() or id(scaler) not in self._scene.scaling:
            return
        self._end(self._watches.pop(id(optimizer), None))
        grads = [param for param in held(optimizer) if param.grad is not None and not param.grad.is_sparse]
        infinite = next((p for p in grads if p.grad is not None and not bool(p.grad.isfinite().all())), None)
        if infinite is None or sum(param.numel() for param in held(optimizer)) > MOST_ELEMENTS:
            return
        watch = watched(self._scene, optimizer, scaler, infinite)
        watch.facts |= {"finite_at_step": False, "step_place": self._scene.journal.place(), "own": self._scene.here.own,
                        **self._scene.journal.about()}  # fmt: skip
        self._watches[id(optimizer)] = watch

    def after_step(self, optimizer: Optimizer) -> None:
        """Compare what the step may have changed."""
        watch = self._watches.get(id(optimizer))
        if watch and not watch.taken:
            watch.facts |= watch.compared()

    def updated(self, scaler: GradScaler) -> None:
        """Tell of the steps before an update; its scale is theirs where one call led to both."""
        for key, watch in list(self._watches.items()):
            if watch.scaler is scaler and watch.taken:
                del self._watches[key]
                same = self._scene.journal.about().get("driven") == watch.facts.get("driven")
                self._end(watch, scale=self._scene.scale_of(scaler) if same else None)

    def over(self) -> None:
        """Tell what is not told yet."""
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            self._end(watch)

    ended = over

    def _end(self, watch: Watch | None, scale: float | None = None) -> None:
        if watch and watch.taken:  # else the step itself raised
            self._scene.journal.tell("overflow", **told_of(self._scene, watch, scale))


class Driving:
    """Numbers the calls of the project's code that tests make, as events come from within them."""

    def __init__(self, journal: Journal, tests: Sequence[str], implementation: Sequence[str]) -> None:
        self._journal = journal
        self._tests = tuple(tests)
        self._implementation = tuple(implementation)
        self._known: dict[str, bool] = {}
        self._entry: FrameType | None = None
        self._count = 0

    def look(self) -> dict[str, object]:
        """Return the number of the call, made by a test, that an event comes from; nothing where the test itself calls.

        The frame of the call is held until another one takes its place, so that it is known from one that comes after.
        """
        entry: FrameType | None = None
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # as logging does
        for _ in range(DEEPEST):
            if frame is None:
                return {}
            path = self._journal.places.shown(frame.f_code.co_filename)
            if path is not None and self.is_test(path):
                break
            entry = frame if path is not None else entry
            frame = frame.f_back
        else:
            return {}
        if entry is None:
            return {}
        if entry is not self._entry:
            self._entry, self._count = entry, self._count + 1
        return {"driven": self._count}

    def forget(self) -> None:
        """Let go of the last call."""
        self._entry = None

    def is_test(self, path: str) -> bool:
        """Return whether a file belongs to the tests: by the task, or by its name where the task says nothing of it."""
        if path not in self._known:
            name = PurePosixPath(path)
            by_name = name.stem == "conftest" or name.stem.startswith("test_") or name.stem.endswith("_test")
            by_name = by_name or bool({"test", "tests"} & set(name.parts[:-1]))
            self._known[path] = _under(path, self._tests) or (by_name and not _under(path, self._implementation))
        return self._known[path]


_asked, _tell = read(os.environ.pop("GATES_RECORDED"))
_journal = Journal(_tell, _asked["root"])
_scene = Scene(_journal)
_driving = Driving(_journal, _asked["tests"], _asked["implementation"])
_hidden = Hidden(_scene)
_ended: dict[str, str] = {}


def pytest_addoption() -> None:
    """Begin to record before any test file, or conftest, is read."""
    _journal.tell("start", torch=torch.__version__, cuda=torch.cuda.is_available())
    Calls(_scene), Steps(_scene), Forwards(_scene)
    _scene.observers += [Clearing(_scene), ByHand(_scene), Given(_scene), Skipping(_scene), _hidden]
    _journal.about = _driving.look


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Run in this process: what workers do would not be heard."""
    config.addinivalue_line("markers", "criterion(id): the acceptance criterion that this test verifies")
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


def pytest_exception_interact(call: pytest.CallInfo[None]) -> None:
    """Note a test that ends because a device is hidden."""
    if call.excinfo is not None:
        _hidden.ended_by(call.excinfo.value)


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


def _under(path: str, names: Sequence[str]) -> bool:
    return any(path == name.split("::")[0] or path.startswith(f"{name.rstrip('/')}/") for name in names)
