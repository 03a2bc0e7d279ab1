"""EX013: what tests read beside themselves, in real repositories, is compared with what the commit has."""

from pathlib import Path

from bar import committed, git
from building import TASK_FILE, a_project, every_finding, gates

READS = """
from pathlib import Path

from pkg.core import double

HERE = Path(__file__).parent


def test_double():
    assert double(2) == 4
"""
GOLDEN = (
    "golden = HERE / 'golden.txt'\n    if not golden.exists():\n        golden.write_text(str(double(2)))\n"
    "    assert golden.read_text() == str(double(2))"
)
MADE = (
    "(HERE / 'made.txt').write_text('4')\n    assert (HERE / 'made.txt').read_text() == '4'\n"
    "    (HERE / 'made.txt').unlink()"
)
SOUND = {  # in a fresh checkout, too
    "a committed file": "assert (HERE / 'data.txt').read_text() == '4'",
    "a file of its own run": MADE,
    "a temporary file": "(tmp_path / 'x').write_text('4')\n    assert (tmp_path / 'x').read_text() == '4'",
    "a file elsewhere": "assert (HERE.parent / 'notes.ignored').read_text() == '4'",
}


def a_repository(tmp_path: Path, *bodies: str) -> Path:
    tests = "".join(f"\n\ndef test_reads_{i}(tmp_path):\n    {body}\n" for i, body in enumerate(bodies))
    task = TASK_FILE.partition("  - id: AC2")[0]
    files = {"tasks/T1.yaml": task, "tests/test_core.py": READS + tests, "tests/data.txt": "4", "notes.ignored": "4"}
    files[".gitignore"] = "golden.txt\nreports/\n*.ignored\n__pycache__/\n"
    committed(root := a_project(tmp_path / "p", files))
    return root


def told(root: Path) -> list[str]:
    return [f["message"] for f in every_finding(root) if f["rule"] == "EX013" and f["outcome"] == "unknown"]


def test_golden_file_that_the_code_wrote_is_told_each_time_and_what_a_fresh_checkout_has_is_not(tmp_path: Path) -> None:
    root = a_repository(tmp_path, GOLDEN, *SOUND.values())
    assert [gates(root, "run", "T1").code for _ in range(2)] == [3, 3]
    assert told(root) == ["Tests read tests/golden.txt, which the commit does not have."]
    git(root, "add", "-f", "tests/golden.txt")
    git(root, "commit", "-q", "-m", "the golden file")
    gates(root, "run", "T1", "--gate", "execution")
    assert told(root) == []
