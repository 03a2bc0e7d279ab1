"""The one option of this suite, golden files are rewritten only where somebody asks for it; its order, signals, state.

No property is one of time: a busy machine may take its time to make an example.
"""

import compileall
import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # several tests run at a time: more threads each would only wait
gc.set_threshold(100_000, 50, 100)  # thousands of collected tests are no garbage, nor is what a look for it walks
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from what is rendered now")


def pytest_configure(config: pytest.Config) -> None:
    """Compile what hundreds of processes will import, once: they may be told to write no bytecode."""
    if not hasattr(config, "workerinput"):
        for folder in ("gates", "amp_core", "amp_audit", "examples"):
            compileall.compile_dir(Path(__file__).parents[1] / folder, quiet=2)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let each worker begin with modules whose tests share a run: what moves between workers at the end has no such.

    Workers get their tests in slices and steal from each other's ends. A module that is split makes its run twice.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    sharing = {item.path for item in items if isinstance(item, pytest.Function) and _shares(item)}
    others = [item for item in items if item.path not in sharing]
    begins: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for path in dict.fromkeys(item.path for item in items if item.path in sharing):
        min(begins, key=len).extend(item for item in items if item.path == path)
    ordered: list[pytest.Item] = []
    for worker, begin in enumerate(begins):
        rest = (len(items) - len(ordered)) // (workers - worker) - len(begin)
        ordered += [*begin, *others[:rest]]
        del others[:rest]
    items[:] = [*ordered, *others]


def pytest_collection_finish() -> None:
    """Look for no garbage among what was collected: a search would walk it again and again, a fork copy it."""
    gc.freeze()


def _shares(item: pytest.Function) -> bool:
    """Return whether a test uses a fixture that is made once for its module."""
    return any(fixture.scope == "module" for made in item._fixtureinfo.name2fixturedefs.values() for fixture in made)


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Let what the tests start hear of Ctrl-C, even where the shell started the suite in its background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
