"""EX013: what tests read beside themselves, in real repositories, is compared with what the commit has."""

from pathlib import Path

import pytest
from bar import committed, git
from building import a_project, every_finding, gates

READS = """
from pathlib import Path

from pkg.core import double

HERE = Path(__file__).parent


def test_double():
    assert double(2) == 4


def test_reads(tmp_path):
    %s
"""
GOLDEN = (
    "golden = HERE / 'golden.txt'\n    if not golden.exists():\n        golden.write_text(str(double(2)))\n"
    "    assert golden.read_text() == str(double(2))"
)
MADE = (
    "(HERE / 'made.txt').write_text('4')\n    assert (HERE / 'made.txt').read_text() == '4'\n"
    "    (HERE / 'made.txt').unlink()"
)
SOUND = {
    "a committed file": ("assert (HERE / 'data.txt').read_text() == '4'", {"tests/data.txt": "4"}),
    "a file of its own run": (MADE, {}),
    "a temporary file": ("(tmp_path / 'x').write_text('4')\n    assert (tmp_path / 'x').read_text() == '4'", {}),
    "a file elsewhere": ("assert (HERE.parent / 'notes.ignored').read_text() == '4'", {"notes.ignored": "4"}),
}


def a_repository(tmp_path: Path, body: str, files: dict[str, str]) -> Path:
    ignored = {".gitignore": "golden.txt\nreports/\n*.ignored\n__pycache__/\n"}
    root = a_project(tmp_path / "p", {"tests/test_core.py": READS % body, **ignored, **files})
    committed(root)
    return root


def told(root: Path) -> list[str]:
    gates(root, "run", "T1", "--gate", "execution")
    return [f["message"] for f in every_finding(root) if f["rule"] == "EX013" and f["outcome"] == "unknown"]


def test_golden_file_that_the_code_wrote_gives_no_other_verdict_the_second_time(tmp_path: Path) -> None:
    root = a_repository(tmp_path, GOLDEN, {})
    assert [gates(root, "run", "T1").code for _ in range(2)] == [3, 3]
    assert told(root) == ["Tests read tests/golden.txt, which the commit does not have."]
    git(root, "add", "-f", "tests/golden.txt")
    git(root, "commit", "-q", "-m", "the golden file")
    assert told(root) == []


@pytest.mark.parametrize("case", SOUND)
def test_what_a_fresh_checkout_would_read_as_well_is_sound(case: str, tmp_path: Path) -> None:
    body, files = SOUND[case]
    assert told(a_repository(tmp_path, body, files)) == []
