"""The audit of somebody else's report."""

from pathlib import Path

import pytest
from building import a_context, a_project, a_task, written
from reporting import REPORT, a_reported_project

from gates.claims.audit import audit, markdown, text
from gates.claims.claim import Standing
from gates.errors import UsageError
from gates.task.loading import load

CODES = {
    "Score: 1/2 (50%)\n": 0,
    "Score: 1/2 (60%)\n": 1,
    "Score: 1/2 (50%)\n\nScore: 1/2 (60%)\n": 1,
    "Speedup: 1.72x\n": 3,
    "It is a joy to use.\n": 3,
    "": 3,
}


@pytest.mark.parametrize(("page", "code"), CODES.items())
def test_exit_code_says_how_the_report_stands(page: str, code: int, tmp_path: Path) -> None:
    written(tmp_path, {"r.md": page})
    assert audit(tmp_path / "r.md", root=tmp_path).exit_code == code


def test_report_may_lie_outside_of_the_project(tmp_path: Path) -> None:
    project = a_reported_project(tmp_path / "p")
    written(tmp_path, {"r.md": REPORT})
    done = audit(tmp_path / "r.md", root=project)
    assert done.count(Standing.CONTRADICTED) == 0
    assert done.count(Standing.CONFIRMED) > 5


def test_contradictions_come_first_with_their_place_and_the_truth(tmp_path: Path) -> None:
    project = written(a_reported_project(tmp_path), {"r.md": REPORT.replace("(75%)", "(85%)")})
    shown = text(audit(project / "r.md", root=project))
    first = shown.splitlines()[2:5]
    assert first[0].startswith("CONTRADICTED  r.md:56  Requirements verified: 6/8 (85%)")
    assert first[2].endswith("it is 75.0 %")
    page = markdown(audit(project / "r.md", root=project))
    assert "## Contradicted\n\n| Place | Text |" in page
    assert page.index("6/8 is 85 %") < page.index("## Unsupported")


def test_what_is_audited_cannot_write_on_the_page(tmp_path: Path) -> None:
    written(tmp_path, {"r.md": "1/2 (60%) <script>x</script> | [a](b) \u202e ![i](c)\n"})
    done = audit(tmp_path / "r.md", root=tmp_path)
    page = markdown(done)
    assert done.count(Standing.CONTRADICTED) == 1
    assert "<script>" not in page
    assert "[a](b)" not in page
    assert "\u202e" not in page + text(done)


def test_report_that_cannot_be_read_is_a_wrong_use(tmp_path: Path) -> None:
    written(tmp_path, {"r.md": b"\xff\xfe"})
    for name in ("r.md", "nothing.md"):
        with pytest.raises(UsageError, match=name):
            audit(tmp_path / name, root=tmp_path)


def test_with_a_task_only_what_the_claims_speak_of_is_collected(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"r.md": "# Performance\nSpeedup: 2x on cpu\nMemory reduction: 36%\n"})
    task = load(project / "tasks/T1.yaml", project)
    context = a_context(project)
    done = audit(project / "r.md", root=project, task=task, context=context)
    assert [(r.claim.said.kind, r.standing) for r in done.rulings] == [
        ("number", Standing.CONFIRMED),
        ("number", Standing.UNSUPPORTED),
    ]
    assert not (context.evidence / "pytest").exists()
    assert (context.evidence / "measurements").exists()


def test_task_without_tests_supports_no_count(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"r.md": "# Tests\n3 passed\n"})
    done = audit(project / "r.md", root=project, task=a_task(tests=[]), context=a_context(project))
    assert [ruling.standing for ruling in done.rulings] == [Standing.UNSUPPORTED]
    assert "names no 'tests'" in done.rulings[0].seen
