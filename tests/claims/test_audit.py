"""The audit of somebody else's report."""

from pathlib import Path

import pytest
from building import a_project, gates, written
from reporting import REPORT, a_reported_project, contradicted

CODES = {"Score: 1/2 (50%)\n": 0, "1/2 (60%)\n": 1, "1/2 (50%)\n\n1/2 (60%)\n": 1, "Speedup: 1.72x\n": 3, "": 3}


@pytest.mark.parametrize(("page", "code"), CODES.items())
def test_exit_code_says_how_the_report_stands(page: str, code: int, tmp_path: Path) -> None:
    written(tmp_path, {"r.md": page})
    assert gates(tmp_path, "audit", "r.md").code == code


def test_what_is_wrong_comes_first_and_what_was_not_understood_is_listed(tmp_path: Path) -> None:
    project = a_reported_project(tmp_path / "p")
    written(tmp_path, {"r.md": REPORT.replace("(75%)", "(85%)")})
    lines = gates(project, "audit", str(tmp_path / "r.md"), "--out", "page.md").out.splitlines()
    assert "1 contradicted" in lines[0]
    assert "numbers were computed again or found; not understood: lines 3, 4, 8," in lines[0]
    assert lines[2].endswith("r.md:56  Requirements verified: 6/8 (85%)")
    assert lines[4].endswith("it is 75 %")
    page = (project / "page.md").read_text(encoding="utf-8")
    assert page.index("6/8 (85%)") < page.index("| unsupported |")


def test_what_is_audited_cannot_write_on_the_page(tmp_path: Path) -> None:
    written(tmp_path, {"r.md": "1/2 (60%) <script>x</script> | [a](b) \u202e ![i](c)\n"})
    ended = gates(tmp_path, "audit", "r.md", "--out", "page.md")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert ended.code == 1
    assert not [bad for bad in ("<script>", "[a](b)", "\u202e") if bad in page]
    assert "\u202e" not in ended.out


def test_report_that_cannot_be_read_is_a_wrong_use(tmp_path: Path) -> None:
    written(tmp_path, {"r.md": b"\xff\xfe"})
    ended = gates(tmp_path, "audit", "r.md")
    assert (ended.code, "r.md:1:1: byte 0xff is not UTF-8" in ended.err) == (2, True)


def test_with_a_task_its_tests_answer_the_counts(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"r.md": "# Tests\n3 passed\n", "good.md": "# Tests\n1 passed\n"})
    assert [gates(project, "audit", page, "--task", "T1").code for page in ("r.md", "good.md")] == [1, 0]


def test_our_own_reports_hold_what_they_say(tmp_path: Path) -> None:
    skipped = "import pytest\n\n\n@pytest.mark.skip(reason='no device')\ndef test_gpu():\n    assert 1\n"
    project = a_project(tmp_path / "p", {"tests/test_gpu.py": skipped})
    assert gates(project, "run", "T1", "--out", "old").code == 0
    pages = sorted((project / "old").glob("*.md"))
    assert len(pages) == 5
    for page in pages:
        assert contradicted(page.read_text(encoding="utf-8"), project) == []
