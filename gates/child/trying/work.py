"""Tries faults one after the other: put in, run the tests, take out; what is noticed is checked without the fault.

There its file is only written anew, with comments that mean nothing: a test that notices those notices no fault.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .. import warm
from .keeping import RESULTS, Copy, marked
from .session import run
from .values import HEARD

Told = dict[str, Any]
TIMES, LEAST_S, LEAST_BUSY_S = 5, 5.0, 1.0  # as long as without a fault, and at least
NOTICED = {"killed", "timeout", "memory", "crashed"}
EACH = ("--maxfail=0", "--continue-on-collection-errors")  # the last of several counts: all tests run
TURNS = 100_000  # more than one worker takes: in a copy no two states of a file look alike


class Worker:
    """One copy and the sessions that run in it."""

    def __init__(self, plan: Told, *, forked: bool) -> None:
        self._plan, self._forked = plan, forked
        self._root, self._scratch = Path(plan["root"]), Path(plan["scratch"])
        self._mark = self._scratch / "mark"
        self._copy = Copy(self._root, Path(plan["pristine"]), plan["turns"] * TURNS)
        self._collected, self._kinds = set[str](), dict[str, str]()
        self._controls: dict[tuple[str, ...], Told] = {}
        self._noticing: set[tuple[str, str]] = set()  # the test functions that noticed something of a criterion

    def tried(self, fault: Told, deadline: float) -> Told:
        """Return how tests end with one thing after the other put in, until they notice or nobody can tell."""
        tests, missed, tries = self._known(fault["tests"]), False, list[Told]()
        for way in fault["ways"] if tests else ():
            if time.time() > deadline:
                return {"id": fault["id"], "tries": tries, "late": True}
            self._mark.unlink(missing_ok=True)
            found = self._noticed(fault, way, tests, self._limit_s(fault))
            called = self._mark.exists()
            tries.append({**found, "called": called})
            survived = found["end"] == "survived" and not found["idle"]
            if found["end"] in NOTICED or not (survived or missed):
                break
            missed |= survived and called
        if tries and tries[-1]["end"] in NOTICED:
            self._noticing.add(_function(fault, tries[-1]["by"]))
        return {"id": fault["id"], "tries": tries, "collected": tests}

    def asked_each(self, fault: Told, deadline: float) -> Told:
        """Return which tests fail with something else put in and pass without it, and which pass with it."""
        noticed, missed, limit_s = set[str](), set[str](), self._limit_s(fault)
        for way in fault["ways"]:
            left = [test for test in self._known(fault["each"]) if _function(fault, test) not in self._noticing]
            if left and time.time() <= deadline:
                failed, passed = _ends(self._run(fault, way, left, limit_s, *EACH))
                found = failed and failed & _ends(self._run(fault, None, sorted(failed), limit_s, *EACH))[1]
                self._noticing |= {_function(fault, test) for test in found}
                noticed |= found
                missed |= passed
        return {"id": fault["id"], "noticed": sorted(noticed), "missed": sorted(missed)}

    def _limit_s(self, fault: Told) -> float:
        return max(LEAST_S, TIMES * (float(fault.get("start_s", 0)) + float(fault["tests_s"])))

    def _known(self, tests: list[str]) -> list[str]:
        return [test for test in tests if test in self._collected]

    def _noticed(self, fault: Told, text: str, tests: list[str], limit_s: float) -> Told:
        """Run tests with a fault in; what they notice counts only if they pass as far without it."""
        found, aside = Told(), list[str]()
        for _ in range(4):
            found = {**_judged(self._run(fault, text, tests, limit_s)), "aside": aside, "idle": 0}
            if found["end"] == "survived":
                control = self._control(fault, tests, limit_s) if found["passed"] < len(tests) else found
                return {**found, "idle": len(tests) - int(control.get("passed", 0))}
            if found["end"] == "broken":
                break
            upto = tests.index(found["by"]) + 1 if found["by"] in tests else len(tests)
            control = self._control(fault, tests[:upto], limit_s)
            if control["again"]:
                continue  # without a fault it fails in a forked process, and passes in its own
            longer = control["seconds"] * TIMES > limit_s * 1.5, control["busy"] * TIMES > _busy_s(fault)
            waited = found["busy"] <= _busy_s(fault) and limit_s <= self._limit_s(fault)  # maybe for a busy machine
            if found["end"] == "timeout" and (waited or any(longer)):
                limit_s = max(limit_s * (1 + 2 * waited), control["seconds"] * TIMES)
                fault["longest_s"] = max(float(fault["longest_s"]), 2 * control["busy"])
                continue
            if control["end"] == "survived":
                return found
            found |= {"end": "unsteady", "message": control["message"]}
            aside.append(control["by"])
            tests = [test for test in tests if test != control["by"]]
            if not tests or control["by"] != found["by"]:
                return found
        return found if found["end"] == "broken" and not aside else {**found, "end": "unsteady"}

    def _control(self, fault: Told, tests: list[str], limit_s: float) -> Told:
        """Return how tests end without a fault; once only a forked one fails them, none is any more."""
        key = (str(self._forked), fault["file"], *tests)
        if key not in self._controls:
            found = _judged(self._run(fault, None, tests, limit_s))
            if found["end"] != "survived" and self._forked:
                self._forked = False
                alone = _judged(self._run(fault, None, tests, limit_s))
                if alone["end"] == "survived":
                    return {**alone, "again": True}
                self._forked = True  # it is not the forking
            self._controls[key] = {**found, "again": False}
        return self._controls[key]

    def _run(self, fault: Told, text: str | None, tests: list[str], limit_s: float, *more: str) -> Told:
        """Run tests with another text in a file, or with one that means the same."""
        self._copy.put(fault["file"], marked(text or fault["same"], self._mark))
        try:
            if text is None:
                return self._session(tests, limit_s * 3, *more)
            return self._session(tests, limit_s, *more, busy_s=_busy_s(fault), whole=fault.get("whole", []))
        finally:
            self._copy.restore()

    def prepare(self, faults: list[Told], deadline: float) -> None:
        """Collect all tests once and hear what kind of thing functions give back; where others spoil it, each alone."""
        passed, whole = self._prepared(faults, _heard_by(faults).values(), deadline)
        alone: dict[frozenset[str], list[Told]] = {}
        for fault in faults:
            alone.setdefault(frozenset(test.split("::")[0] for test in fault["tests"]), []).append(fault)
        for own in alone.values():
            unheard = not passed.issuperset(heard := _heard_by(own).values())
            if (unheard or (not whole and len(alone) > 1)) and time.time() < deadline:
                self._prepared(own, [test for fault in own for test in fault["tests"]] if heard else (), deadline)
        kinds = self._scratch / "kinds.json"
        kinds.write_text(json.dumps(self._kinds), encoding="utf-8")
        os.environ[HEARD] = str(kinds)

    def _prepared(self, faults: list[Told], run: Iterable[str], deadline: float) -> tuple[set[str], bool]:
        """Collect tests, keep what is compiled, run some; return those that pass, and whether that came to an end."""
        tests = list(dict.fromkeys(test for fault in faults for test in fault["tests"]))
        parts = {key: key.rpartition(":") for key in _heard_by(faults)}
        places = {key: (str(self._root / path), int(line)) for key, (path, _, line) in parts.items()}
        session = self._session(tests, deadline - time.time(), *EACH, compiled=True, run=[*run], listen=places)
        self._copy.restore()
        told = session["events"]
        self._collected |= {event["id"] for event in told if event["event"] == "collected"}
        self._kinds |= {event["key"]: event["kind"] for event in told if event["event"] == "kind"}
        for fault in faults:
            fault["start_s"] = session["seconds"]  # what a session takes, beside its tests
        return _ends(session)[1], any(event.get("exit_code") in {0, 1} for event in told)

    def _session(self, tests: list[str], limit_s: float, *more: str, **facts: object) -> Told:
        files = dict.fromkeys(test.split("::")[0] for test in tests)
        told = {
            "tests": tests,
            "events": str(self._scratch / "events.jsonl"),
            "cache": str(self._scratch / "cache"),
            "root": str(self._root),
            "rewritten": self._plan["rewritten"],
            "arguments": [*files, "--maxfail=1", f"--rootdir={self._root}", *more],
            **facts,
        }
        most = max(2 * 1024**3, 3 * int(self._plan["peak_bytes"]))
        return run(told, forked=self._forked, log=self._scratch / "session.log", limit_s=limit_s, limit_bytes=most)


def _heard_by(faults: list[Told]) -> dict[str, str]:
    """Return the functions whose kind of result is to be heard, each with a test that runs it."""
    return {key: test for fault in faults for key, test in fault.get("listen", {}).items()}


def _busy_s(fault: Told) -> float:
    return max(LEAST_BUSY_S, TIMES * float(fault["longest_s"]))


def _function(fault: Told, test: str) -> tuple[str, str]:
    return fault.get("of", ""), test.partition("[")[0]


def _ends(session: Told) -> tuple[set[str], set[str]]:
    """Return the tests of a session that failed in any phase, and those that passed and did not."""
    ended = [event for event in session["events"] if event["event"] == "ended"]
    failed = {event["id"] for event in ended if event["outcome"] == "failed"}
    passed = {event["id"] for event in ended if event["when"] == "call" and event["outcome"] == "passed"}
    return failed, passed - failed


def _judged(session: Told) -> Told:
    """Return what a session comes to: who noticed, or that nobody did."""
    events, passed = session["events"], _ends(session)[1]
    facts = {"by": "", "message": "", "seconds": round(session["seconds"], 3), "passed": len(passed)}
    facts |= {"busy": session["busy"]}
    started = next((event["id"] for event in reversed(events) if event["event"] == "started"), "")
    ended = [event for event in events if event["event"] == "ended"]
    if failed := next((event for event in events if event.get("raised") or event.get("outcome") == "failed"), None):
        return {**facts, "end": "killed", "by": failed["id"], "message": failed["message"]}
    if session["why"]:
        return {**facts, "end": session["why"] if started else "broken", "by": started}
    bad = next((event["message"] for event in events if event["event"] == "uncollected"), "")
    if not ended:
        return {**facts, "end": "broken", "message": bad or f"no test ran, exit code {session['code']}"}
    if not any(event["event"] == "exit" for event in events):
        return {**facts, "end": "crashed", "by": started, "message": f"the process ended, exit code {session['code']}"}
    return {**facts, "end": "survived"}


def work(plan: Told, *, forked: bool) -> None:
    """Try the faults of each group that no other worker has, until its time is up; then ask tests about each."""
    worker = Worker(plan, forked=forked)
    with Path(plan["scratch"], RESULTS).open("a", encoding="utf-8") as results:
        for number, group in enumerate(plan["groups"]):
            begun, faults = time.time(), group["faults"]
            deadline = begun + group["budget_s"]
            if faults:  # what a later group needs spoils nothing of this one
                worker.prepare(faults, deadline)
            for told in _tried(worker, faults, deadline, Path(plan["scratch"]).with_name(f"claimed-{number}")):
                results.write(json.dumps({"group": number, "took_s": time.time() - begun, **told}) + "\n")
                results.flush()


def _tried(worker: Worker, faults: list[Told], deadline: float, claims: Path) -> Iterator[Told]:
    own = list[Told]()
    for number, fault in enumerate(faults):
        try:
            Path(f"{claims}-{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        own.append(fault)
        if time.time() <= deadline:
            yield worker.tried(fault, deadline)
    yield from (worker.asked_each(fault, deadline) for fault in own if fault.get("each") and time.time() <= deadline)


def main() -> None:
    """Work through the plan in a file, from its copy."""
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path[:1] = [] if getattr(sys.flags, "safe_path", False) else [plan["root"]]
    work(plan, forked=warm.forked)
