"""The bar of today beside an earlier one: what counts as lower, what does not, and what can't be compared."""

import dataclasses
import textwrap
from pathlib import Path
from typing import Any

import pytest
from bar import committed, git
from building import TASK_FILE, a_context, a_criterion, a_measure, a_project, a_task, written

from gates.checks.policy.judge import Goalposts, Mode
from gates.checks.policy.moves import Part, compare_settings, compare_tasks, compare_tests
from gates.errors import EvidenceUnavailable
from gates.task import loading as spec
from gates.task.task import Task

BAR, CHANGED, WAIVER = Part.BAR, Part.CHANGED, Part.WAIVER


def lowered(before: Task, after: Task, *gone: str) -> list[tuple[Part, str]]:
    return [(move.part, str(move)) for move in compare_tasks(before, after, frozenset(gone))]


def asking(**changes: Any) -> Task:
    return a_task(criteria=[a_criterion(**changes)])


def with_measure(**changes: Any) -> Task:
    return asking(measures=[a_measure(**changes)])


def using(symbol: str, *uses: str) -> Task:
    return asking(code=[{"symbol": symbol, "uses": uses}])


def of_pattern(**changes: Any) -> Task:
    facts = {"pattern": "torch.amp.GradScaler(...)", "in": "pkg/scaler.py", "at_least": 2, **changes}
    return asking(code=[{key: value for key, value in facts.items() if value}])


def tabled(*rows: dict[str, Any]) -> Task:
    return a_task(calculations=[{"call": "pkg.core:f", "table": list(rows)}])


def waived(**changes: Any) -> Task:
    return a_task(waivers=[{"criterion": "AC2", "reason": "r", "owner": "o", "expires": "2026-01-01", **changes}])


def with_leak(kept: int | None) -> Task:
    return a_task(leaks=[{"call": "pkg.core:epoch", "tolerance_bytes": kept, "line": 9}])


SPEED = "AC1 ratio old/new of step_time_s"
FITS = "AC1 pattern torch.amp.GradScaler(...) in pkg/scaler.py"
TASKS: dict[str, tuple[Task, Task, list[tuple[Part, str]]]] = {
    "nothing": (a_task(), a_task(), []),
    "a comment moved every line": (a_task(), a_task(criteria=[a_criterion(line=99), a_task().criteria[1]]), []),
    "title": (a_task(), a_task(title="New"), []),
    "threshold lowered": (with_measure(), with_measure(at_least=1.2), [(BAR, f"{SPEED} at_least: 1.5 -> 1.2")]),
    "threshold raised": (with_measure(), with_measure(at_least=1.6), []),
    "limit raised": (with_measure(at_least=None, below=0.01), with_measure(at_least=None, below=0.1),
                     [(BAR, f"{SPEED} below: 0.01 -> 0.1")]),
    "limit the other way round": (with_measure(), with_measure(at_least=None, at_most=1.5),
                                  [(BAR, f"{SPEED} at_least: 1.5 -> removed")]),
    "any device": (with_measure(on="cuda"), with_measure(on="any"), [(BAR, f"{SPEED} seen on: cuda -> any")]),
    "one device": (with_measure(on="any"), with_measure(on="cuda"), [(CHANGED, f"{SPEED} seen on: any -> cuda")]),
    "a leak may keep more": (with_leak(None), with_leak(10**7),
                             [(BAR, "pkg.core:epoch() tolerance_bytes: exact -> 10000000")]),
    "only when": (with_measure(), with_measure(when=["bf16"]), [(BAR, f"{SPEED} applies only when: always -> bf16")]),
    "always again": (with_measure(when=["bf16"]), with_measure(), []),
    "measure is a wish": (with_measure(), with_measure(level="should"), [(BAR, f"{SPEED} level: must -> should")]),
    "a wish is lowered": (with_measure(level="should"), with_measure(level="should", at_least=1),
                          [(CHANGED, f"{SPEED} at_least: 1.5 -> 1")]),
    "measure removed": (with_measure(), asking(), [(BAR, f"AC1 measures {SPEED[4:]}: asked for -> removed")]),
    "measure of a wish removed": (asking(level="should", measures=[a_measure()]), asking(level="should"),
                                  [(CHANGED, f"AC1 measures {SPEED[4:]}: asked for -> removed")]),
    "criterion removed": (a_task(), asking(), [(BAR, "criteria AC2: asked for -> removed")]),
    "criterion renamed": (asking(), asking(id="AC1b"), [(CHANGED, "AC1 id: AC1 -> AC1b")]),
    "criterion added": (asking(), a_task(), []),
    "criterion is a wish": (asking(), asking(level="should"), [(BAR, "AC1 level: must -> should")]),
    "criterion in other words": (asking(text="At least twice as fast"), asking(text="Not slower"),
                                 [(CHANGED, "AC1 text: At least twice as fast -> Not slower")]),
    "binding removed": (asking(code=[{"symbol": "pkg:a"}, {"symbol": "pkg:b"}]), asking(code=[{"symbol": "pkg:a"}]),
                        [(BAR, "AC1 code pkg:b: asked for -> removed")]),
    "use removed": (using("pkg:a", "x.y", "z"), using("pkg:a", "z"), [(BAR, "AC1 uses x.y: asked for -> removed")]),
    "use moved to another symbol": (
        using("pkg:a", "x.y", "z"),
        asking(code=[{"symbol": "pkg:a", "uses": ["z"]}, {"symbol": "pkg:b", "uses": ["x.y"]}]), []),
    "use replaced": (using("pkg:a", "x.y", "z"), using("pkg:a", "x.w", "z"),
                     [(CHANGED, "AC1 uses x.y: asked for -> removed")]),
    "symbol replaced": (using("pkg:a", "x", "y"), using("lib:b", "z"),
                        [(CHANGED, "AC1 code pkg:a: asked for -> removed")]),
    "code moved": (using("pkg.a:C.f", "x"), using("pkg.b:C.f", "x"),
                   [(CHANGED, "AC1 code pkg.a:C.f: asked for -> removed")]),
    "the same places": (of_pattern(), of_pattern(), []),
    "fewer places": (of_pattern(), of_pattern(at_least=1), [(BAR, f"{FITS} at_least: 2 -> 1")]),
    "more places": (of_pattern(), of_pattern(at_least=3), []),
    "places anywhere": (of_pattern(), of_pattern(**{"in": None}), [(BAR, f"{FITS} in: pkg/scaler.py -> anywhere")]),
    "places of a folder": (of_pattern(), of_pattern(**{"in": "pkg"}), [(BAR, f"{FITS} in: pkg/scaler.py -> pkg")]),
    "places of another file": (of_pattern(), of_pattern(**{"in": "pkg/new.py"}),
                               [(CHANGED, f"{FITS} in: pkg/scaler.py -> pkg/new.py")]),
    "tests bound less": (asking(tests=["tests/a.py", "tests/b.py"]), asking(tests=["tests/a.py"]),
                         [(BAR, "AC1 tests tests/b.py: bound -> removed")]),
    "tests bound wider": (asking(tests=["tests/a.py", "tests/b.py"]), asking(tests=["tests"]), []),
    "entry point removed": (a_task(), a_task(entry_points=[]),
                            [(BAR, "entry_points python -m pkg: asked for -> removed")]),
    "entry point stands for less": (a_task(), a_task(entry_points=[{"run": ["python", "-m", "pkg"]}]),
                                    [(BAR, "python -m pkg criteria AC1: asked for -> removed")]),
    "coverage": (a_task(), a_task(coverage_at_least=0.5), [(BAR, "coverage_at_least: 0.8 -> 0.5")]),
    "more time": (a_task(), a_task(entry_points=[{**a_task().entry_points[0].model_dump(), "timeout_s": 9}]), []),
    "a waiver": (a_task(), waived(), [(WAIVER, "waiver of AC2: none -> until 2026-01-01 (o)")]),
    "a longer waiver": (waived(), waived(reason="s", expires="2026-02-01"),
                        [(WAIVER, "AC2 waiver until: 2026-01-01 -> 2026-02-01")]),
    "a waiver less": (waived(), a_task(), []),
}  # fmt: skip


@pytest.mark.parametrize("case", TASKS)
def test_task_that_asks_for_less_is_told_from_one_that_asks_for_as_much(case: str) -> None:
    before, after, expected = TASKS[case]
    assert lowered(before, after) == expected


def test_test_file_that_was_renamed_is_no_lost_binding() -> None:
    before, after = (asking(tests=[path]) for path in ("tests/a.py", "tests/b.py"))
    assert [part for part, _ in lowered(before, after, "tests/a.py")] == [CHANGED]
    assert [part for part, _ in lowered(before, after)] == [BAR]


def calculating(**changes: Any) -> Task:
    return tabled({"args": [1], "expected": 2.5, "tolerance": 0.01, **changes}, {"args": [2], "expected": 5})


def test_calculations_are_compared_row_by_row() -> None:
    (wider,) = lowered(calculating(), calculating(tolerance=0.5))
    assert (wider[0], wider[1].endswith("tolerance: 0.01 -> 0.5")) == (BAR, True)
    assert [part for part, _ in lowered(calculating(), tabled({"args": [2], "expected": 5}))] == [BAR]
    assert [part for part, _ in lowered(calculating(), calculating(expected=3))] == [CHANGED]
    assert [part for part, _ in lowered(calculating(), calculating(args=[0], expected=0))] == [BAR]


def test_row_that_is_exchanged_is_gone_and_no_two_rows_are_taken_for_one() -> None:
    one, two = {"args": [3], "expected": 1.5}, {"args": [5], "expected": 2.5, "tolerance": 0.1}
    assert [part for part, _ in lowered(tabled(one, two), tabled({"args": [1], "expected": 1}, two))] == [BAR]
    assert lowered(tabled(one, one, two), tabled(one, two, {"args": [9], "expected": 3})) == [
        (BAR, "pkg.core:f table args [3], expected 1.5: asked for -> removed")
    ]
    (moved,) = lowered(tabled(one, two), tabled({"args": [9], "expected": 3}, {**one, "expected": 1.25}, two))
    assert moved == (CHANGED, "pkg.core:f args [3], expected 1.5 expected: 1.5 -> 1.25")


def test_edge_case_that_is_exchanged_is_gone_and_one_that_is_renamed_is_not() -> None:
    def edge(**changes: Any) -> Task:
        return a_task(edge_cases=[{"name": "half", "call": "pkg.core:f", "args": [0.5], "expected": 1.5, **changes}])

    assert [part for part, _ in lowered(edge(), edge(args=[1], expected=1))] == [BAR]
    assert lowered(edge(), edge(name="one half")) == []
    assert [part for part, _ in lowered(edge(), edge(call="pkg.new:f"))] == [CHANGED]


@pytest.mark.parametrize("change", [{"of": "wait_s"}, {"ratio": ["new", "old"]}, {"ratio": ["old", "other"]}])
def test_measure_of_something_else_is_another_measure(change: dict[str, Any]) -> None:
    assert lowered(with_measure(), with_measure(**change)) == [(BAR, f"AC1 measures {SPEED[4:]}: asked for -> removed")]
    assert [part for part, _ in lowered(with_measure(), with_measure(**{"from": "other"}))] == [CHANGED]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"tolerance": 0.1}, "tolerance: exact -> 0.1"),
        ({"relative": 1e-3}, {"relative": 1e-2}, "relative: 0.001 -> 0.01"),
        ({"relative": 1e-2}, {"relative": 1e-3}, None),
        ({"tolerance": 1e-3}, {}, None),
    ],
)
def test_a_wider_tolerance_is_lower(before: dict[str, Any], after: dict[str, Any], expected: str | None) -> None:
    wide, wider = (tabled({"args": [1], "expected": 0.25, **said}) for said in (before, after))
    found = lowered(wide, wider)
    assert [part for part, _ in found] == [BAR] * bool(expected)
    assert all(text.endswith(f" {expected}") for _, text in found)


def test_waiver_that_is_wider_or_for_another_criterion_is_a_new_one() -> None:
    before = waived(rule="PF001")
    assert lowered(before, waived()) == [(WAIVER, "waiver of AC2: none -> until 2026-01-01 (o)")]
    assert [part for part, _ in lowered(before, waived(rule="PF001", criterion="AC1"))] == [WAIVER]
    assert [part for part, _ in lowered(before, waived(rule="PF002"))] == [WAIVER]


def test_command_whose_module_was_renamed_is_no_lost_entry_point() -> None:
    before, after = (a_task(entry_points=[{"run": ["python", "-m", name]}]) for name in ("pkg.cli", "pkg.command"))
    assert [part for part, _ in lowered(before, after, "src/pkg/cli.py")] == [CHANGED]
    assert [part for part, _ in lowered(before, after, "pkg/cli/__main__.py")] == [CHANGED]
    assert [part for part, _ in lowered(before, after, "pkg/other.py")] == [BAR]


A = "def test_a():\n    x = [1, 2]\n    y = sum(x)\n    assert y == 3\n"
SKIPPED = {
    f"@pytest.mark.skip(reason='x')\n{A}": "pytest.mark.skip(reason='x')",
    f"@pytest.mark.skipif(True, reason='x')\n{A}": "pytest.mark.skipif(True, reason='x')",
    f"@pytest.mark.xfail(strict=False)\n{A}": "pytest.mark.xfail(strict=False)",
    f"@unittest.skip('x')\n{A}": "unittest.skip('x')",
}


def moves_of(before: dict[str, str], after: dict[str, str]) -> list[str]:
    old, new = ({path: text.encode() for path, text in side.items()} for side in (before, after))
    return [str(move) for move in compare_tests(old, new)]


@pytest.mark.parametrize("after", SKIPPED)
def test_test_that_does_not_run_any_more_is_named(after: str) -> None:
    assert moves_of({"t.py": A}, {"t.py": after}) == [f"test t.py::test_a: runs -> {SKIPPED[after]}"]
    assert moves_of({"t.py": after}, {"t.py": A}) == ["tests of t.py: those of the base -> test_a changed"]


def test_test_that_changed_is_named() -> None:
    changed = A.replace("y == 3", "y > 0")
    assert moves_of({"t.py": A}, {"t.py": changed}) == ["tests of t.py: those of the base -> test_a changed"]
    assert moves_of({"t.py": A}, {"t.py": f"# a comment\n\n{A}"}) == []


def test_deleted_test_is_named_and_one_that_moved_is_not() -> None:
    b = A.replace("test_a", "test_b").replace("3", "4")
    assert moves_of({"t.py": A + b}, {"t.py": A}) == ["test t.py::test_b: there -> deleted"]
    assert moves_of({"t.py": A}, {}) == ["test t.py::test_a: there -> deleted"]
    assert moves_of({"t.py": A}, {"u.py": A}) == []
    assert moves_of({"t.py": A}, {"t.py": A.replace("test_a", "test_sum")}) == []
    assert moves_of({"t.py": A}, {"t.py": f"class TestA:\n{textwrap.indent(A, '    ')}"}) == []


def test_bound_test_that_is_renamed_in_a_repository_is_found_again(tmp_path: Path) -> None:
    task = TASK_FILE.replace("tests: [tests/test_core.py]", "tests: [tests/test_b.py::test_a]")
    assert task != TASK_FILE
    project = a_project(tmp_path / "p", {"tests/test_b.py": A, "tasks/T1.yaml": task})
    committed(project)
    renamed = {"tests/test_b.py": A.replace("test_a", "test_sum")}
    written(project, {**renamed, "tasks/T1.yaml": task.replace("::test_a", "::test_sum")})
    assert told(project) == []


INI = "[tool.pytest.ini_options]\n"
SETTINGS = {
    ("", "[tool.gates]\ntasks = 'other'\n"): ["[tool.gates] tasks: default -> other"],
    ("", "[tool.gates]\ngoalposts = 'list'\n"): ["[tool.gates] goalposts: default -> list"],
    ("", "[tool.gates]\ntimeout_s = 5\n"): [],
    ("", f"{INI}addopts = '-q --deselect tests/a.py::test_b'\n"):
        ["pytest addopts: default -> -q --deselect tests/a.py::test_b"],
    (f"{INI}addopts = '-q  -k slow'\n", f"{INI}addopts = ['-q', '-k', 'slow']\n"): [],
    (f"{INI}addopts = '--strict-markers'\n", f"{INI}markers = ['slow']\n"):
        ["pytest addopts: --strict-markers -> default"],
    (f"{INI}xfail_strict = true\n", f"{INI}xfail_strict = false\n"): ["pytest xfail_strict: true -> false"],
    (f"{INI}filterwarnings = ['error']\n", f"{INI}filterwarnings = ['error', 'ignore::UserWarning']\n"):
        ["pytest filterwarnings: error -> error ignore::UserWarning"],
    (f"{INI}testpaths = ['a', 'b']\n", f"{INI}testpaths = ['a']\n"): ["pytest testpaths: a b -> a"],
    ("", "[tool.coverage.run]\nomit = ['pkg/hard.py']\n"): ["coverage omit: default -> pkg/hard.py"],
    ("[tool.coverage.report]\nfail_under = 90\n", "[tool.coverage.report]\nfail_under = 50\n"):
        ["coverage fail_under: 90 -> 50"],
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), SETTINGS)
def test_settings_of_what_is_seen_are_named_with_both_sides(before: str, after: str) -> None:
    files = [{"pyproject.toml": text.encode()} for text in (before, after)]
    assert [str(move) for move in compare_settings(files[0], files[1], [])] == SETTINGS[before, after]
    assert [*compare_settings(files[1], files[1], [])] == []


def test_new_file_that_overrides_pytests_settings_is_named() -> None:
    old = {"pyproject.toml": b"[tool.pytest.ini_options]\nxfail_strict = true\n"}
    found = [str(m) for m in compare_settings(old, {**old, "pytest.ini": b"[pytest]\n"}, [])]
    assert found == ["the settings in pytest.ini: none -> there"]


def seen(project: Path, base: str | None = None, task: str = "tasks/T1.yaml") -> Goalposts:
    return Goalposts.collect(spec.load(project / task, project), dataclasses.replace(a_context(project), base=base))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in the commit of a repository."""
    committed(a_project(tmp_path / "p"))
    return tmp_path / "p"


def told(project: Path, base: str | None = None) -> list[str]:
    return [str(move) for move in seen(project, base).moves]


def lower(project: Path) -> None:
    (project / "tasks/T1.yaml").write_text(TASK_FILE.replace("at_least: 1.5", "at_least: 1.2"), encoding="utf-8")


LOWER = "AC2 ratio old/new of step_time_s at_least: 1.5 -> 1.2"


def test_uncommitted_lowering_on_the_base_itself_is_seen(project: Path) -> None:
    lower(project)
    found = seen(project)
    assert ([str(m) for m in found.moves], found.base, found.mode) == ([LOWER], "main", Mode.BAR)
    assert str(found.moves[0].location) == "tasks/T1.yaml:16"


def test_lowering_that_the_base_has_already_is_no_lowering(project: Path) -> None:
    lower(project)
    committed(project)
    assert told(project) == []


def test_branch_is_compared_with_where_it_left_the_base(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p")
    start = committed(project)
    git(project, "checkout", "-q", "-b", "work")
    lower(project)
    committed(project)
    git(project, "checkout", "-q", "main")
    (project / "tests/test_core.py").write_text("def test_other() -> None:\n    assert 1\n", encoding="utf-8")
    committed(project)
    git(project, "checkout", "-q", "work")
    found = seen(project)
    assert ([str(m) for m in found.moves], found.commit) == ([LOWER], start)


def test_base_branch_of_a_pull_request_is_taken_from_the_environment(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "branch", "release")
    lower(project)
    committed(project)
    monkeypatch.setenv("GITHUB_BASE_REF", "release")
    assert told(project) == [LOWER]
    project.rename(tmp_path / "q")
    monkeypatch.setenv("GITHUB_BASE_REF", "gone")
    with pytest.raises(EvidenceUnavailable, match="there is no revision 'gone' to compare with; fetch it"):
        seen((tmp_path / "q").rename(tmp_path / "r"))


def test_new_task_has_no_earlier_bar(tmp_path: Path) -> None:
    project = written(tmp_path / "p", {"x.txt": "x"})
    committed(project)
    found = seen(a_project(project))
    assert (found.is_new, [m for m in found.moves if m.part is not Part.SETTINGS], found.unread) == (True, [], ())


def test_mode_comes_from_the_base_and_not_from_the_change(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"pyproject.toml": "[tool.gates]\ngoalposts = 'all'\n"})
    committed(project)
    (project / "pyproject.toml").write_text("[tool.gates]\ngoalposts = 'list'\n", encoding="utf-8")
    found = seen(project)
    assert (found.mode, [str(m) for m in found.moves]) == (Mode.ALL, ["[tool.gates] goalposts: all -> list"])


def test_code_beside_its_tests_is_no_policy_and_what_the_task_runs_and_a_new_conftest_are(tmp_path: Path) -> None:
    made = '{name: one, call: "in.probes:ask", args: [{$call: "in.made:it"}], expected: 1, criteria: [AC1]}'
    task = TASK_FILE.replace("tests: [tests]", "tests: [pkg/tests]") + f"edge_cases: [{made}]\n"
    beside = ("pkg/tests/a.md", "pkg/core.py", "in/made.py", "in/probes.py", "bench.py", "other.py")
    project = a_project(tmp_path / "p", {"tasks/T1.yaml": task, **dict.fromkeys(beside, "x = 1\n")})
    committed(project)
    written(project, {**dict.fromkeys(beside, "x = 2\n"), "pkg/conftest.py": "y = 1\n"})
    named = ("bench.py", "in/made.py", "in/probes.py", "pkg/tests/a.md")
    listed = [f"file {name}: that of the base -> changed" for name in named]
    assert told(project) == [*listed, "file pkg/conftest.py: none -> there"]


def test_other_things_that_are_gone_are_named(tmp_path: Path) -> None:
    files = {
        "tasks/T2.yaml": TASK_FILE.replace("T1", "T2"),
        ".github/workflows/g.yml": "run: gates run T1 --policy-from x\n",
        "reports/templates/summary.md.j2": "x",
    }
    project = a_project(tmp_path / "p", files)
    committed(project)
    (project / "tasks/T2.yaml").unlink()
    written(project, {".github/workflows/g.yml": "run: gates run T1\n", "reports/templates/summary.md.j2": "y"})
    assert told(project) == [
        "task file tasks/T2.yaml: asked for -> deleted",
        "workflow .github/workflows/g.yml: run: gates run T1 --policy-from x -> run: gates run T1",
        "template reports/templates/summary.md.j2: there -> changed",
    ]


def test_own_rule_in_the_place_of_a_shipped_one_is_named_and_one_more_is_not(project: Path) -> None:
    written(project, {"gates-rules/mine.yaml": "id: mine\n", "gates-rules/lax.yaml": "id: amp-step-order\n"})
    assert told(project) == ["code rule gates-rules/lax.yaml: none -> there"]


def test_line_ends_and_odd_names_are_no_change(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {'tests/a b\n\u00fc".py': A, "tests/sub/-x.py": A})
    committed(project)
    for path in (project / "tests").rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert told(project) == []
    (project / 'tests/a b\n\u00fc".py').unlink()
    (project / "tests/sub/-x.py").unlink()
    assert len(told(project.rename(tmp_path / "q"))) == 2


def test_file_that_cannot_be_read_is_named_and_its_tests_do_not_count_as_deleted(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"tests/test_b.py": A, "tests/test_c.py": A})
    committed(project)
    (project / "tests/test_b.py").write_text("def (", encoding="utf-8")
    (project / "tests/test_c.py").unlink()
    (project / "tests/test_c.py").symlink_to("test_core.py")
    (project / "pyproject.toml").write_bytes(b"\xff")
    found = seen(project)
    assert found.moves == ()
    assert [line.split(" ")[0] for line in found.unread] == ["tests/test_b.py", "tests/test_c.py", "pyproject.toml:"]


def test_task_file_at_the_base_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"tasks/T1.yaml": "id: T1\ncriteria: ["})
    committed(project)
    found = seen(a_project(project))
    assert (found.is_new, found.moves, len(found.unread)) == (False, (), 1)
    assert "at the base" in found.unread[0]


def unavailable(project: Path, base: str | None = None) -> str:
    with pytest.raises(EvidenceUnavailable) as caught:
        seen(project, base)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_project_without_history_says_why_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = a_project(tmp_path / "p")
    assert unavailable(project).startswith("the project is not in a git repository")
    git(project, "init", "-q")
    assert unavailable(project.rename(tmp_path / "q")).startswith("the repository has no commit yet")
    project = (tmp_path / "q").rename(tmp_path / "r")
    committed(project)
    assert "no revision 'nope'" in unavailable(project, "nope")
    monkeypatch.setenv("PATH", "")
    assert unavailable(project.rename(tmp_path / "s")).startswith("there is no git on this machine")


def test_shallow_history_says_so(tmp_path: Path, project: Path) -> None:
    git(project, "checkout", "-q", "-b", "work")
    committed(project, "one")
    git(project, "checkout", "-q", "main")
    committed(project, "another")
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{project}", "q")
    git(tmp_path / "q", "checkout", "-q", "work")
    assert "the history is shallow; fetch it" in unavailable(tmp_path / "q", "origin/main")


@pytest.mark.parametrize("branch", ["main", "work"])
def test_clone_that_is_cut_off_at_head_is_not_compared_with_itself(branch: str, tmp_path: Path) -> None:
    project = a_project(tmp_path / "p")
    committed(project)
    git(project, "checkout", "-q", "-b", "work")
    committed(project, "one")
    committed(project, "two")
    git(project, "branch", "-q", "-f", "main")
    git(project, "checkout", "-q", "main")
    for depth in (1, 2):
        clone = tmp_path / str(depth)
        git(tmp_path, "clone", "-q", "--depth", str(depth), "-b", branch, f"file://{project}", str(clone))
        if branch == "main":
            assert seen(clone).moves == ()  # HEAD is the base
        else:
            why = "the history is shallow and lacks what came before HEAD; fetch it (`git fetch --unshallow`"
            assert unavailable(clone).startswith(why)


def test_clone_that_lacks_files_says_so_and_fetches_nothing(tmp_path: Path, project: Path) -> None:
    git(project, "config", "uploadpack.allowFilter", "true")
    committed(written(project, {"tasks/T1.yaml": f"{TASK_FILE}# more\n"}), "more")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{project}", "q")
    lacking = git(tmp_path / "q", "rev-list", "--objects", "--all", "--missing=print").count("\n?")
    assert unavailable(tmp_path / "q", "HEAD~1").startswith("the clone lacks files")
    assert git(tmp_path / "q", "rev-list", "--objects", "--all", "--missing=print").count("\n?") == lacking > 0
    git(tmp_path / "q", "fetch", "-q", "--refetch", "--no-filter")
    assert seen((tmp_path / "q").rename(tmp_path / "r"), "HEAD~1").moves == ()


def test_nothing_that_the_repository_configures_is_run(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {".gitattributes": "*.py filter=evil diff=evil\n"})
    committed(project)
    evil = f"touch {tmp_path / 'evil'}"
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external",
                "core.sshCommand", "core.pager", "core.editor"):  # fmt: skip
        git(project, "config", key, evil)
    written(project, {"tests/test_core.py": A, ".git/hooks/post-index-change": f"#!/bin/sh\n{evil}\n"})
    (project / ".git/hooks/post-index-change").chmod(0o755)
    assert len(seen(project).moves) == 1
    assert not (tmp_path / "evil").exists()


def test_environment_sends_git_nowhere_else(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(project)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    assert told(project) == [LOWER]


def test_project_in_a_folder_of_the_repository_is_compared_there(tmp_path: Path) -> None:
    project = a_project(tmp_path / "repo/inner/p")
    committed(tmp_path / "repo")
    lower(project)
    assert told(project) == [LOWER]


LINKS = {
    "to a task file": ("tasks/T1.yaml", "../specs/T1.yaml"),
    "of a folder": ("tasks", "specs"),
    "to nowhere": ("tasks/T1.yaml", "../gone.yaml/../T1.yaml"),
    "out of the repository": ("tasks/T1.yaml", "../../outside.yaml"),
}


@pytest.mark.parametrize("case", LINKS)
def test_what_was_a_link_is_not_followed_nor_taken_for_new(case: str, tmp_path: Path) -> None:
    link, target = LINKS[case]
    project = a_project(tmp_path / "p", {"specs/T1.yaml": TASK_FILE})
    (project / "tasks/T1.yaml").unlink()
    if link == "tasks":
        (project / link).rmdir()
    (project / link).symlink_to(target)
    committed(project)
    (project / link).unlink()
    lower(a_project(project))
    found = seen(project)
    assert (found.is_new, [move for move in found.moves if move.part is BAR]) == (False, [])
    assert f"{link} is a link or a submodule there, which is not followed" in found.unread[0]


def test_another_project_with_a_task_of_the_same_id_is_another_bar(tmp_path: Path) -> None:
    a_project(tmp_path / "repo/one")
    committed(tmp_path / "repo")
    project = a_project(tmp_path / "repo/two")
    lower(project)
    found = seen(project)
    assert (found.is_new, [m for m in found.moves if m.part is not Part.SETTINGS]) == (True, [])


RENAMED = {
    "a task file in another place": ("tasks/T1-doubling.yaml", "tasks/T1.yaml", TASK_FILE),
    "a task that takes the id of another": ("tasks/E.yaml", "tasks/E.yaml", TASK_FILE.replace("id: T1", "id: E")),
    "a task file in another form": ("tasks/U.yaml", "tasks/T1.yaml", TASK_FILE.replace("id: T1", '"id": T1')),
    "a task that got another id": ("tasks/T1.yaml", "tasks/T1.yaml", TASK_FILE.replace("id: T1", "id: T9")),
}


@pytest.mark.parametrize("case", RENAMED)
def test_task_is_compared_with_the_one_of_its_id_or_else_of_its_path(case: str, tmp_path: Path) -> None:
    path, was, before = RENAMED[case]
    project = a_project(tmp_path / "p")
    (project / "tasks/T1.yaml").unlink()
    committed(written(project, {was: before}))
    (project / was).unlink()
    written(project, {path: TASK_FILE.replace("at_least: 1.5", "at_least: 1.2")})
    assert LOWER in [str(move) for move in seen(project, task=path).moves]
