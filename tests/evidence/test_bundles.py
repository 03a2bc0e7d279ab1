"""Bundles as files, compared with a real project: what fits, what is stale and since when, what is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import a_context, a_criterion, a_measure, a_process, samples, written
from bundling import a_bundle, a_bundled_run, a_cuda_task, put

from gates.check import EvidenceSet
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.bundles import Bundles, HandedIn, bind
from gates.evidence.measurements import Measurements
from gates.measuring import machine
from gates.measuring.taken import MeasurementRun
from gates.task.task import Task

FILES = {"pkg/__init__.py": "", "pkg/core.py": "import helping\n", "helping.py": "", "bench.py": "", "README.md": "x"}


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A project on disk."""
    return a_context(written(tmp_path / "project", FILES))


def fitting(context: Context, **changes: Any) -> Any:
    """A bundle of the project as it is now."""
    task = a_cuda_task()
    return a_bundle(a_bundled_run(files=bind(task, task.measurements[0], context)), **changes)


def looked_at(context: Context, *paths: str, task: Task | None = None) -> tuple[HandedIn, ...]:
    task = (task or a_cuda_task()).model_copy(update={"bundles": paths or ("a.json",)})
    return Bundles.collect(task, context).handed_in


def test_bundle_of_the_files_as_they_are_fits_and_is_kept(context: Context) -> None:
    path = put(fitting(context), context.root / "a.json")
    (one,) = looked_at(context)
    assert (one.why, one.signer) == ("", "")
    assert one.runs[0].run.raw == "bundles/0.json"
    assert one.runs[0].run.elsewhere == "a.json, not signed"
    assert (context.evidence / "bundles/0.json").read_bytes() == path.read_bytes()


def changed(path: str) -> Callable[[Path], object]:
    return lambda root: (root / path).write_text("y = 2\n", encoding="utf-8")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file of the implementation": (
        changed("pkg/core.py"),
        "helping.py is not used any more, pkg/core.py was changed",
    ),
    "what it imports": (changed("helping.py"), "helping.py was changed"),
    "the benchmark": (changed("bench.py"), "bench.py was changed"),
    "a new file": (changed("pkg/new.py"), "pkg/new.py was added"),
    "new data": (changed("pkg/table.csv"), "pkg/table.csv was added"),
    "a file is gone": (lambda root: (root / "pkg/__init__.py").unlink(), "pkg/__init__.py was removed"),
    "another case": (lambda root: (root / "helping.py").rename(root / "Helping.py"), "helping.py was removed"),
    "an import more": (
        lambda root: (root / "pkg/core.py").write_text("import helping, pkg, bench\n"),
        "pkg/core.py was changed",
    ),
    "a module that comes before an installed one": (
        lambda root: [(root / "bench.py").write_text("import json\n"), changed("json.py")(root)],
        "bench.py was changed, json.py was added",
    ),
}


@pytest.mark.parametrize(("change", "why"), CHANGES.values(), ids=CHANGES.keys())
def test_a_file_of_it_changed_and_it_is_stale(context: Context, change: Callable[[Path], object], why: str) -> None:
    put(fitting(context), context.root / "a.json")
    change(context.root)
    (one,) = looked_at(context)
    assert one.why == why
    assert one.runs[0].changed


def test_unrelated_file_changed_and_it_is_still_good(context: Context) -> None:
    put(fitting(context), context.root / "a.json")
    written(context.root, {"README.md": "y", "tests/test_core.py": "", "new.py": "", "pkg/__pycache__/a.pyc": "x"})
    (context.root / "pkg/core.py").touch()
    assert looked_at(context)[0].why == ""


def test_measurement_changed_in_the_task_and_it_is_stale_and_another_part_changed_and_it_is_not(
    context: Context,
) -> None:
    put(fitting(context), context.root / "a.json")
    other = {"id": "bench", "run": ["python", "bench.py", "--quick", "{device}", "{out}"]}
    (one,) = looked_at(context, task=a_cuda_task(measurements=[other]))
    assert one.why == "measurement bench in the task file was changed"
    (one,) = looked_at(context, task=a_cuda_task(measurements=[{**other, "id": "other"}], criteria=[a_criterion()]))
    assert one.why == "the task has no measurement bench any more"
    same = a_cuda_task().measurements[0].model_dump(exclude_defaults=True) | {"timeout_s": 9, "line": 99}
    more = [a_criterion(id="AC2", tests=[], measures=[a_measure(on="cuda")]), a_criterion(text="New", level="should")]
    (one,) = looked_at(context, task=a_cuda_task(measurements=[same], criteria=more, title="Other"))
    assert (bool(one.runs), one.why) == (True, "")


def test_one_run_of_two_is_stale_and_the_other_is_still_good(context: Context) -> None:
    both = [
        {"id": "bench", "run": ["python", "bench.py", "{device}", "{out}"]},
        {"id": "more", "run": ["python", "more.py", "{device}", "{out}"]},
    ]
    task = a_cuda_task(measurements=both)
    written(context.root, {"more.py": ""})
    run = MeasurementRun(id="more", device="cuda", process=a_process(), samples=samples(device="cuda"))
    runs = [
        a_bundled_run(files=bind(task, task.measurements[0], context)),
        a_bundled_run(files=bind(task, task.measurements[1], context), run=run, definition=both[1]),
    ]
    put(a_bundle(*runs), context.root / "a.json")
    written(context.root, {"more.py": "x"})
    (one,) = looked_at(context, task=task)
    assert one.why == "more.py was changed"
    assert [bool(run.changed) for run in one.runs] == [False, True]


def test_altered_bundle_and_one_of_another_task_are_refused(context: Context) -> None:
    data = put(fitting(context), context.root / "a.json").read_bytes()
    (context.root / "a.json").write_bytes(data.replace(b"somebody", b"anybody!"))
    put(fitting(context, task={"id": "T2", "title": "x", "path": "x", "digest": "d"}), context.root / "b.json")
    altered, other, gone = looked_at(context, "a.json", "b.json", "c.json")
    assert {one.runs for one in (altered, other, gone)} == {()}
    assert altered.why == "it was altered: its digest is not that of its contents"
    assert other.why == "it is evidence of the task T2, not of T1"
    assert gone.why == "it cannot be read: No such file or directory"
    assert not [*(context.evidence / "bundles").iterdir()]


def test_bundle_that_nobody_signed_is_refused_where_signatures_are_asked_for(context: Context) -> None:
    put(fitting(context), context.root / "a.json")
    (one,) = looked_at(replace(context, signers=("ada ssh-ed25519 AAAA",)))
    assert one.runs == ()
    assert one.why.startswith("it is not signed")


def test_without_bundles_there_is_no_evidence_of_them(context: Context) -> None:
    with pytest.raises(EvidenceUnavailable, match="no bundle was handed in"):
        Bundles.collect(a_cuda_task(), context)
    assert not (context.evidence / "bundles").exists()


def test_device_that_is_not_here_is_not_tried(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "may_have", lambda device: device == "cpu")
    (run,) = Measurements.derive(a_cuda_task(), context, EvidenceSet()).runs
    assert (run.problem, run.process, run.samples) == ("this machine shows no cuda device", None, None)
    monkeypatch.setattr(machine, "may_have", lambda _device: True)
    (run,) = Measurements.derive(a_cuda_task(bundles=("a.json",)), context, EvidenceSet()).runs
    assert run.process is not None
