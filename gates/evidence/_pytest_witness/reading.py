"""What items and reports of pytest say, as short texts and numbers."""

import inspect
from collections.abc import Iterator

import pytest

PLAIN = (str, int, float, bool, type(None))
NO_NEWS = {"parametrize", "usefixtures", "filterwarnings", "criterion"}


def marks_of(item: pytest.Item) -> list[str]:
    """Return the marks of a test with their arguments; of an argument that is no plain value, its type."""
    return [_shown(mark) for mark in item.iter_markers() if mark.name not in NO_NEWS]


def _shown(mark: pytest.Mark) -> str:
    args = [*map(_short, mark.args), *(f"{name}={_short(value)}" for name, value in mark.kwargs.items())]
    return f"{mark.name}({', '.join(args)})" if args else mark.name


def _short(value: object) -> str:
    return repr(value)[:200] if type(value) in PLAIN else type(value).__name__


def is_left_out_by_mark(item: pytest.Item) -> bool:
    """Return whether the mark expression (`-m`) and nothing else leaves a test out."""
    options = item.config.option
    if not options.markexpr or options.keyword or options.deselect:
        return False
    try:
        from _pytest.mark import MarkMatcher
        from _pytest.mark.expression import Expression

        matcher = getattr(MarkMatcher, "from_markers", None)
        marked = matcher(item.iter_markers()) if matcher else MarkMatcher.from_item(item)  # type: ignore[attr-defined]  # pytest 8.2
        return not Expression.compile(options.markexpr).evaluate(marked)
    except Exception:  # noqa: BLE001  # no public way to ask: another version is another answer, the careful one
        return False


def switched_off(collector: pytest.Collector) -> Iterator[dict[str, object]]:
    """Yield the tests that a class inherits and puts something else in the place of (`test_it = None`), and where."""
    kinds = getattr(collector.obj, "__mro__", ()) if isinstance(collector, pytest.Class) else ()
    names = dict.fromkeys(name for kind in kinds for name in vars(kind) if name.startswith("test"))
    for name in names:
        held = [vars(kind)[name] for kind in kinds if name in vars(kind)]
        function = next((inspect.unwrap(one) for one in held[1:] if inspect.isfunction(one)), None)
        if function is not None and not callable(getattr(held[0], "__func__", held[0])):
            code = function.__code__
            yield {"name": name, "file": code.co_filename, "line": code.co_firstlineno}


def reason_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return why something was skipped."""
    where = report.longrepr
    if isinstance(where, tuple) and len(where) == 3:
        return str(where[2]).removeprefix("Skipped: ")[:500]
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail)[:500] or "no reason given"
    return str(where or "")[:500]


def text_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return what a failure says."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)[:2000]
    return str(report.longrepr)[-2000:]


def crash_of(report: pytest.TestReport) -> tuple[str, int]:
    """Return the innermost line of the traceback, as an absolute path and a number."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.path), int(crash.lineno)
    return report.location[0], (report.location[1] or 0) + 1
