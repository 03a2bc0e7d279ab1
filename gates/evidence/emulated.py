"""Tests that were skipped for want of a CUDA device, run again on one that the CPU emulates."""

import json
import re
import shutil
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.process import ProcessRun
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.model import CommandRecord, Location, Model
from gates.project.files import copy_package
from gates.task.task import Task
from gates.terminal import printable

PLUGIN = "gates_emulated"
WANTING = re.compile(r"cuda|\bgpus?\b|nvidia|accelerator", re.IGNORECASE)
MOST = 200
LIMIT_S = 300.0


class EmulatedTest(Model):
    """A test, and how it ended on the emulated device.

    `differs` is an assertion that failed, which may be for the device's sake; `not measured` is a question for speed
    or memory, which an emulated device does not answer; `not emulated` is what torch says for want of a real one.
    """

    id: str
    ended: str
    message: str = ""
    location: Location


class Emulated(Evidence):
    """What tests for CUDA did on the CPU. It says nothing of speed, memory or kernels, and satisfies no criterion."""

    process: ProcessRun | None
    asked: tuple[str, ...]
    tests: tuple[EmulatedTest, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run the tests again that the test run skipped for want of a CUDA device."""
        if not task.emulate:
            raise EvidenceUnavailable(f"{task.path} names no device to 'emulate'")
        asked = _skipped(context.evidence / "pytest" / "report.json")
        how = "tests that were skipped for want of CUDA, on an emulated device: the CPU"
        if not asked:
            return cls(how=how, process=None, asked=(), tests=())
        folder = context.folder("emulated").evidence
        target = folder / "tests.jsonl"
        ended = _run(asked, target, context, folder)
        command = CommandRecord(purpose="tests on an emulated device", argv=("python", "-m", "pytest", *asked),
                                ended=ended.ended, duration_s=ended.duration_s)  # fmt: skip
        return cls(how=how, commands=(command,), process=ended, asked=asked, tests=_read(target, context))


def _run(asked: tuple[str, ...], target: Path, context: Context, folder: Path) -> ProcessRun:
    plugin = folder / "plugin"
    package = Path(__file__).with_name("_emulated")
    copy_package(package, plugin / PLUGIN)
    argv = [context.python, "-m", "pytest", *asked, "-p", f"{PLUGIN}.plugin", f"--rootdir={context.root}",
            "-o", f"cache_dir={folder / 'cache'}", "--color=no"]  # fmt: skip
    env = {"PYTHONPATH": process.joined_paths(str(plugin)), "GATES_EMULATED": str(target), "CUDA_VISIBLE_DEVICES": ""}
    limit = min(context.timeout_s, LIMIT_S)
    try:
        return process.run(argv, cwd=context.root, timeout_s=limit, log=folder / "run", env=env)
    except OSError as error:
        raise EvidenceUnavailable(f"{context.python!r} cannot be started: {error}") from error
    finally:
        shutil.rmtree(plugin, ignore_errors=True)
        shutil.rmtree(folder / "cache", ignore_errors=True)


def _skipped(report: Path) -> tuple[str, ...]:
    """Return the tests whose reason to be skipped speaks of a device, as the test run's report tells it."""
    try:
        told = json.loads(report.read_text(encoding="utf-8"))
        tests = [test for test in told["tests"] if test["outcome"] == "skipped"]
        wanting = [str(test["nodeid"]) for test in tests if WANTING.search(_reason(test))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EvidenceUnavailable("the test run left no report of skipped tests (pytest/report.json)") from error
    return tuple(wanting[:MOST])


def _reason(test: dict[str, dict[str, str]]) -> str:
    """Return the reason alone: the place before it is often called after the device."""
    for phase in ("setup", "call"):
        if test.get(phase, {}).get("outcome") == "skipped":
            return test[phase].get("longrepr", "").rpartition("Skipped:")[2]
    return ""


def _read(target: Path, context: Context) -> tuple[EmulatedTest, ...]:
    """Return how each test ended; what went wrong counts more than what came after it."""
    try:
        lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
        found: dict[str, EmulatedTest] = {}
        for line in lines[1:]:
            name = printable(line["id"])
            here = Path(line["path"]) if line["path"] else context.root / name.split("::")[0]
            where = Location(path=printable(context.shown(here)), line=line["line"] or None)
            test = EmulatedTest(id=name, ended=line["ended"], message=printable(line["message"]), location=where)
            if name not in found or found[name].ended == "passed":
                found[name] = test
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvidenceUnavailable(f"the tests on the emulated device left no record: {error!r:.200}") from error
    return tuple(found.values())
