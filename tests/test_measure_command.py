"""`gates measure` and `gates run --evidence`, as real processes in a real repository."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bar import committed
from building import TASK_FILE, Ended, a_project, gates, raw_samples, result

TASK = TASK_FILE.replace("on: cpu", "on: cuda").replace('bench.py, "{out}"', 'bench.py, "{device}", "{out}"')
BENCH = f"""\
import json, os, pathlib, sys, time
import figures
device, out = sys.argv[1:]
if device == "cuda" and "CARD" not in os.environ:
    sys.exit("there is no CUDA device")
pathlib.Path("drift.py").write_text("") if "DRIFT" in os.environ else None
samples = json.loads({json.dumps(raw_samples())!r})
samples["device"] = {{"type": device, "name": os.environ.get("CARD", "a processor")}}
arms = samples["metrics"]["step_time_s"]["arms"]
arms["new"][0] *= float(os.environ.get("FACTOR", "1"))
arms["old"][0] += time.time_ns() % 10**6 / 1e15
pathlib.Path(out).write_text(json.dumps(samples))
"""
ONE = "evidence/T1/cuda-card-one.json"


def card(project: Path, name: str = "Card One", **more: str) -> dict[str, str]:
    """The environment of a machine with a card: its driver's command is there, and tells nothing."""
    driver = project.parent / "drivers" / "nvidia-smi"
    driver.parent.mkdir(exist_ok=True)
    driver.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    driver.chmod(0o755)
    return {"CARD": name, "PATH": f"{driver.parent}{os.pathsep}{os.environ['PATH']}", **more}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose benchmark needs a CUDA device, and a bundle that was made where there was one."""
    files = {"tasks/T1.yaml": TASK, "bench.py": BENCH, "figures.py": "", ".gitignore": "__pycache__/\nreports/\n"}
    project = a_project(tmp_path_factory.mktemp("measured") / "project", files)
    committed(project)
    ended = gates(project, "measure", "T1", "--on", "cuda", env=card(project))
    assert (ended.code, ended.out) == (
        0, f"bench on cuda: measured on Card One\nbundle: {ONE}\ntake it with: gates run T1 --evidence {ONE}\n",
    )  # fmt: skip
    return project


def copied(measured: Path, folder: Path) -> Path:
    return Path(shutil.copytree(measured, folder / "project"))


def performance(project: Path, *args: str | Path) -> tuple[Ended, str, list[str]]:
    """Run the performance gate; return how it ended, its decision, and the messages on bundles."""
    ended = gates(project, "run", "T1", "--gate", "performance", *args)
    (gate,) = [gate for gate in result(project)["gates"] if gate["name"] == "performance"]
    return ended, gate["decision"], [finding["message"] for finding in gate["findings"] if finding["rule"] == "PF008"]


def test_committed_bundle_makes_the_task_pass_where_there_is_no_such_device(measured: Path, tmp_path: Path) -> None:
    project = copied(measured, tmp_path)
    written = json.loads((project / ONE).read_text(encoding="utf-8"))
    assert len(written["origin"]["commit"]) == 40
    assert written["origin"]["dirty"] is False
    assert str(tmp_path.parent) not in (project / ONE).read_text(encoding="utf-8")
    assert gates(project, "run", "T1").code == 0
    page = (project / "reports/T1/performance.md").read_text(encoding="utf-8")
    assert f"| cuda: Card One, {ONE}, not signed |" in page
    assert (project / "reports/T1/evidence/bundles/0.json").read_bytes() == (project / ONE).read_bytes()


def test_without_the_bundle_the_command_to_make_it_is_told(measured: Path, tmp_path: Path) -> None:
    project = copied(measured, tmp_path)
    (project / ONE).unlink()
    ended, decision, _ = performance(project)
    assert (ended.code, decision) == (3, "INCONCLUSIVE")
    assert "next:  gates measure T1 --on cuda" in ended.out
    assert ended.err.splitlines()[0].endswith("; not decided here, for want of a cuda device: AC2")


def test_folder_is_taken_without_the_bundles_of_other_tasks_in_any_order(measured: Path, tmp_path: Path) -> None:
    project = copied(measured, tmp_path)
    env = card(project, "Card Two", FACTOR="1.001")
    assert gates(project, "measure", "T1", "--on", "cuda", "--out", tmp_path / "more/two.json", env=env).code == 0
    (project / "tasks/T2.yaml").write_text(TASK.replace("id: T1", "id: T2"), encoding="utf-8")
    assert gates(project, "measure", "T2", "--on", "cuda", "--out", tmp_path / "more", env=card(project)).code == 0
    first = performance(project, "--evidence", tmp_path / "more", "--evidence", ONE)
    page = (project / "reports/T1/partial/performance.md").read_text(encoding="utf-8").partition("## ")[2]
    assert first[1:] == performance(project, "--evidence", ONE, "--evidence", tmp_path / "more/two.json")[1:]
    assert (first[1], len(first[2])) == ("PASS", 2)
    assert page == (project / "reports/T1/partial/performance.md").read_text(encoding="utf-8").partition("## ")[2]


def test_nothing_to_measure_or_to_take_is_said_in_one_line(measured: Path, tmp_path: Path) -> None:
    project = copied(measured, tmp_path)
    ended = gates(project, "measure", "T1", "--on", "cuda", "--out", tmp_path / "none.json")
    assert (ended.code, (tmp_path / "none.json").exists()) == (3, False)
    assert ended.out.startswith("bench on cuda: not measured: the measurement ended with exit code 1: there is no CUDA")
    for args, why in {
        ("measure", "T1", "--on", "mps"): "tasks/T1.yaml: no criterion that was asked for is measured on mps",
        ("measure", "T1", "--only", "AC1"): "tasks/T1.yaml: no criterion that was asked for is measured",
        ("measure", "T1", "--only", "AC7"): "T1 has no criterion 'AC7'",
        ("run", "T1", "--evidence", "gone.json"): "--evidence 'gone.json': there is no such file or folder",
        ("measure", "T1", "--sign-key", "gone"): "--sign-key gone: there is no such file",
    }.items():
        ended = gates(project, *args)
        assert (ended.code, ended.err.count("\n"), f"error: {why}" in ended.err) == (2, 1, True), ended.err


def test_files_that_change_while_they_are_measured_make_no_bundle(measured: Path, tmp_path: Path) -> None:
    project = copied(measured, tmp_path)
    (project / "figures.py").write_text("try:\n    import drift\nexcept ImportError:\n    pass\n", encoding="utf-8")
    ended = gates(project, "measure", "T1", "--on", "cuda", env=card(project, DRIFT="1"))
    assert (ended.code, "not kept: its files changed while it was measured" in ended.out) == (3, True)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen here")
def test_where_signatures_are_asked_for_only_those_of_the_named_count(measured: Path, tmp_path: Path) -> None:
    project = copied(measured, tmp_path)
    keys = [tmp_path / "ada", tmp_path / "eve"]
    for key in keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    public = keys[0].with_suffix(".pub").read_text(encoding="utf-8").strip()
    settings = (project / "pyproject.toml").read_text(encoding="utf-8")
    asking = settings.replace("[tool.gates]", f'[tool.gates]\nevidence_signers = ["ada@example.org {public}"]')
    (project / "pyproject.toml").write_text(asking, encoding="utf-8")
    assert "it is not signed" in performance(project)[2][0]
    assert gates(project, "measure", "T1", "--on", "cuda", "--sign-key", keys[1], env=card(project)).code == 0
    assert "its signature is none of evidence_signers" in performance(project)[2][0]
    assert gates(project, "measure", "T1", "--on", "cuda", "--sign-key", keys[0], env=card(project)).code == 0
    _, decision, (said,) = performance(project)
    assert (decision, "signed by ada@example.org" in said) == ("PASS", True)


@pytest.mark.parametrize("line", ["ada", "", "ada ssh-ed25519", "ada ssh-ed25519 AAAA\nmallory ssh-ed25519 AAAA"])
def test_signer_that_is_no_line_of_allowed_signers_is_refused(tmp_path: Path, line: str) -> None:
    project = a_project(tmp_path, {"pyproject.toml": f"[tool.gates]\nevidence_signers = [{json.dumps(line)}]\n"})
    ended = gates(project, "list")
    assert (ended.code, "pyproject.toml:2:1: evidence_signers" in ended.err) == (2, True)


def test_what_was_measured_on_another_device_than_the_one_asked_for_is_not_kept(tmp_path: Path) -> None:
    task = TASK_FILE.replace("on: cpu", "on: any")
    ended = gates(a_project(tmp_path, {"tasks/T1.yaml": task}), "measure", "T1", "--on", "cuda")
    assert ended.code == 3
    assert "not kept: asked for cuda, measured on cpu" in ended.out
