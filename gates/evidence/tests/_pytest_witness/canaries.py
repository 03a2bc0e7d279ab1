"""Tests of our own that the project's harness is asked to judge: one that must pass, some that must not."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest

running: list[str] = []


def judged(session: pytest.Session) -> list[dict[str, object]]:
    """Run the canaries through the hooks of a test, without telling any report of them; return what they were called.

    They use no fixture and are no part of the session. What cannot be run, because a hook of the project wants more
    of a test than they have, is told as such.
    """
    if not session.items:
        return []
    running.append("now")
    try:
        # imported now, by pytest and after all that the project has to say about imports
        name = f"{__package__}.canary_tests"
        pytest.register_assert_rewrite(name)
        tests = importlib.import_module(name)
        return [_judge(session, tests, name) for name in ("passes", "fails", "compares", "expects")]
    finally:
        running.clear()


def _judge(session: pytest.Session, tests: ModuleType, name: str) -> dict[str, object]:
    told: dict[str, object] = {"id": name, "called": "", "raised": "", "unable": "", "ended": False}

    def test() -> None:
        __tracebackhide__ = True
        try:
            getattr(tests, name)()
        except BaseException as error:
            told["raised"] = type(error).__name__
            raise
        told["ended"] = True

    try:
        item = _item(session, tests, name, test)
        for when in ("setup", "call", "teardown"):
            _phase(item, when, told)
    except Exception as error:  # noqa: BLE001  # whatever the project's hooks make of a test that is not theirs
        told["unable"] = repr(error)[:200]
    return told


def _item(session: pytest.Session, tests: ModuleType, name: str, test: Callable[[], None]) -> pytest.Item:
    module = pytest.Module.from_parent(session, path=session.items[0].path)
    setattr(module, "_obj", tests)  # noqa: B010  # no public way to give a module node its module
    test.__name__ = f"gates_canary_{name}"
    from _pytest.fixtures import FuncFixtureInfo

    nothing = FuncFixtureInfo((), (), [], {})
    item: pytest.Function = pytest.Function.from_parent(module, name=test.__name__, callobj=test, fixtureinfo=nothing)
    setattr(item, "_json_report_extra", {})  # noqa: B010  # set around a test that is part of the session
    return item


def _phase(item: pytest.Item, when: str, told: dict[str, object]) -> None:
    more = {"nextitem": None} if when == "teardown" else {}
    hook = getattr(item.ihook, f"pytest_runtest_{when}")
    call = pytest.CallInfo.from_call(lambda: hook(item=item, **more), when=when)  # type: ignore[arg-type]
    raised = call.excinfo.typename if call.excinfo else ""
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    if when == "call":
        told["called"] = report.outcome
        told["seen"] = raised
    elif call.excinfo is not None:
        told["unable"] = f"{when}: {raised}"
