"""The commands of the pages for newcomers, run as they stand on the project that the first of them builds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bar import committed, git
from building import QUICK, ROOT, clean, written

DOCS = ROOT / "docs"
BLOCK = r"<!-- %s -->\n```\w+\n(.*?)```"


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the first task, with a branch `main` and a change on top."""
    files = re.findall(BLOCK % r"file: (\S+)", page("first-task.md"), re.DOTALL)
    more = {".gitignore": "reports/\n.gates/\n*.bak\n", "pytest.ini": f"[pytest]\naddopts = {QUICK}\n"}
    folder = written(tmp_path_factory.mktemp("first"), {**dict(files), **more})
    committed(folder)
    git(folder, "checkout", "-q", "-b", "change")
    return folder


@pytest.mark.parametrize("name", ["first-task.md", "pull-requests.md", "slow.md"])
def test_every_command_of_a_page_ends_as_the_page_says(name: str, project: Path, tmp_path: Path) -> None:
    (tmp_path / "gates").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gates "$@"\n', encoding="utf-8")
    (tmp_path / "gates").chmod(0o755)
    found = re.findall(BLOCK % r"ends with: (\d+)", page(name), re.DOTALL)
    assert len(found) == page(name).count("```sh") > 0
    for code, command in found:
        path = os.pathsep.join((str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]))
        done = subprocess.run(
            ["bash", "-c", command], cwd=project, env=clean({"PATH": path}), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == int(code), (command, done.stdout, done.stderr)
    git(project, "checkout", "-q", ".")


def test_the_workflow_of_the_page_pins_what_it_uses_and_judges_by_the_base() -> None:
    (block,) = re.findall(BLOCK % "workflow", page("pull-requests.md"), re.DOTALL)
    workflow = yaml.safe_load(block)
    steps = workflow["jobs"]["gate"]["steps"]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    assert [step for step in steps if "--policy-from" in step.get("run", "")]
    assert workflow["permissions"] == {}
