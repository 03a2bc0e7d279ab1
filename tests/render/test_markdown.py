"""The Markdown reports: golden files, what their first lines say, sums, and a project's own templates."""

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from building import (
    a_criterion,
    a_finding,
    a_measure,
    a_process,
    a_record,
    a_run,
    a_task,
    a_tree,
    all_evidence,
    entries,
    folded,
    measured,
    missed,
    samples,
    written,
)

from gates.check import EvidenceSet
from gates.cli import cli
from gates.code.symbols import Use
from gates.commands.history import since
from gates.errors import GatesError, UsageError
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.test_records import TestOutcome, Warned
from gates.model import FileDigest, Location, Outcome, Revision, Status
from gates.proving.proof import End
from gates.render import _views, markdown
from gates.render.markdown import check, render
from gates.report import Report
from gates.task.task import Task

GOLDEN = Path(__file__).parents[1] / "golden"
PAGES = ("summary.md", "audit.md", "execution.md", "business-logic.md", "performance.md")
NOISY = samples(old=[1.0, 1.27, 1.41, 1.59, 1.83, 2.0], new=[1.0] * 5 + [1.000001])
EVIL = "<script>|`x`|</script>\u202e](x) **b**"


def a_report(task: Task, seen: EvidenceSet) -> Report:
    digest = FileDigest(path="pkg/core.py", sha256="a" * 64, bytes=54)
    return folded(
        task, seen, revision=Revision(commit="c" * 40, dirty=True, digest="b" * 64, files=(digest,)),
        environment={"gates": "0.1.0", "platform": "a platform", "processor": "a processor"},
        started_at="2026-01-02T03:04:05Z", duration_s=12.5,
        evidence=(FileDigest(path="pytest/run.stdout.txt", sha256="e" * 64, bytes=321),),
    )  # fmt: skip


def passing() -> Report:
    return a_report(a_task(), all_evidence(a_task()))


def blocking() -> Report:
    """A failed and a hostile test, a symbol that is not there, a crash, and a target that was missed."""
    task = a_task(
        criteria=[
            a_criterion(),
            a_criterion(id="AC2", text=f"Be fast {EVIL}", tests=[], measures=[a_measure(at_least=2.5)], line=12),
            a_criterion(id="AC3", text="Be kind", level="should", tests=["tests/test_kind.py"], line=20),
        ]
    )
    crash = Location(path="pkg/core.py", line=2)
    run = a_run(
        a_record(TestOutcome.FAILED, message="assert 5 == 4\n  where 5 = double(2)", crash=crash),
        a_record(TestOutcome.FAILED, id=f"tests/test_core.py::test_odd[{EVIL}]", message=EVIL),
        a_record(id="tests/test_core.py::test_good"),
        a_record(TestOutcome.SKIPPED, id="tests/test_kind.py::test_skip", message="no device | here"),
        warnings=(Warned(category="UserWarning", message=EVIL, location=Location(path="pkg/core.py", line=1)),),
    )
    gone = a_tree(task).symbols[0].model_copy(update={"location": None, "problem": "pkg/core.py defines no 'double'"})
    tree = SourceTree(how="syntax trees", files=1, symbols=(gone,), rules=(), unparsed=())
    crashed = entries(task, a_process(1), crash=Location(path="pkg/__main__.py", line=3))
    return a_report(task, all_evidence(task, run, tree, crashed))


def inconclusive() -> Report:
    """A speedup too uncertain to decide, a criterion that wants another device, a run whose witnesses disagree."""
    measures = [a_measure(), a_measure(on="cuda"), a_measure(when=["amx_bf16"], level="should")]
    task = a_task(criteria=[a_criterion(), a_criterion(id="AC2", text="Be fast", tests=[], measures=measures, line=12)])
    return a_report(task, all_evidence(task, a_run(disagreements=("they differ",)), measured(NOISY)))


REPORTS = {"pass": passing, "block": blocking, "inconclusive": inconclusive}
report_ = pytest.mark.parametrize("name", REPORTS)


def test_gaps_name_what_the_code_that_is_there_must_use_and_does_not() -> None:
    task = a_task(criteria=[a_criterion(code=[{"symbol": "pkg.core:double", "uses": ["math.fma"]}])])
    (found,) = a_tree(task).symbols
    found = found.model_copy(update={"wanted": ("math.fma",), "uses": (Use(name="math.fma", lines=()),)})
    tree = SourceTree(how="syntax trees", files=1, symbols=(found,), rules=(), unparsed=())
    page = render(a_report(task, all_evidence(task, tree)), None)["business-logic.md"]
    (row,) = [line for line in page.splitlines() if line.startswith("| FAIL | AC1 | ")]
    assert row.endswith("pkg.core:double does not use math.fma. | Use math.fma in pkg.core:double. |")


@report_
def test_pages_are_as_their_golden_files(request: pytest.FixtureRequest, name: str) -> None:
    pages = {page: text for page, text in render(REPORTS[name](), None).items() if page in PAGES}
    if request.config.getoption("--update-golden"):
        for page, text in pages.items():
            (GOLDEN / name).mkdir(parents=True, exist_ok=True)
            (GOLDEN / name / page).write_text(text, encoding="utf-8", newline="\n")
    assert pages == {page: (GOLDEN / name / page).read_text(encoding="utf-8") for page in PAGES}
    for page, text in pages.items():
        if page != "summary.md":
            assert_score_tables_add_up(text)
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table
        bare = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)  # nothing hostile is left outside of code
        assert "<" not in bare
        assert "\u202e" not in text
        assert "**b**" not in bare


def assert_score_tables_add_up(text: str) -> None:
    tables = re.findall(r"\| Points \| Of \|(?: Seen \|)?\n\|[-|]+\|\n((?:\|.*\|\n)+)", text)
    assert tables
    for table in tables:
        numbers = [re.findall(r"\| \**(\d+)\** \| \**(\d+)\** \|", line)[-1] for line in table.splitlines()]
        *parts, whole = [(int(got), int(of)) for got, of in numbers]
        assert parts
        assert (sum(g for g, _ in parts), sum(o for _, o in parts)) == whole
        assert all(g <= o for g, o in parts)


def test_golden_reports_are_what_they_are_called() -> None:
    assert all(build().verdict.decision.value == name.upper() for name, build in REPORTS.items())
    assert {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.md")} == {
        f"{name}/{page}" for name in REPORTS for page in PAGES
    }


FIRST = {
    "pass": ("PASS", "Nothing failed. 2 of 2 criteria are verified.", "gates explain T1"),
    "block": ("BLOCK", "pkg.core:double is not implemented", "gates explain T1 AC1"),
    "inconclusive": ("INCONCLUSIVE: merge blocked until AC1 and AC2 are", "they differ", "gates explain T1 EX001"),
}


@report_
def test_summary_is_one_page_that_begins_with_verdict_cause_and_next_command(name: str) -> None:
    text = render(REPORTS[name](), None)["summary.md"]
    decision, cause, command = FIRST[name]
    assert text.startswith(f"# {decision} ")
    assert cause in text[:800]
    assert f"- **Next**: `{command}`" in text[:800]
    assert len(text.splitlines()) <= 60
    assert ("BLOCK" in text) is (name == "block")


def like_t035() -> Report:
    """Measures that want another device, two too noisy ones, and one that misses its `should`."""
    measures = [a_measure(on="cuda"), a_measure(), a_measure(at_least=9, level="should")]
    more = [a_measure(on="cuda", at_least=1.3), a_measure(at_least=1.6)]
    task = a_task(criteria=[a_criterion(measures=measures), a_criterion(id="AC2", measures=more, line=12)])
    return a_report(task, all_evidence(task, measured(NOISY)))


def told(page: str, *, data: bool) -> Iterator[str]:
    """The long sentences of a page: those of its rows of data, or all others; without labels and blocks of code."""
    for line in re.sub(r"^(`{3,}).*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL).splitlines():
        cells = re.split(r"(?<!\\)\|", line) if line.startswith("|") else [re.sub(r"^[-\s]*\*\*[^*]*\*\*: ", "", line)]
        said = (sentence for cell in cells for sentence in re.split(r"(?<=[.!?])\s+", cell.strip()))
        yield from (each for each in said if len(re.findall(r"\S*\w\S*", each)) >= 10 and line.startswith("|") is data)


@pytest.mark.parametrize("build", [*REPORTS.values(), like_t035])
def test_no_sentence_of_ten_words_stands_twice(build: Callable[[], Report]) -> None:
    pages = [page for name, page in render(build(), None).items() if name != "audit.md"]
    assert len(pages) == 4
    prose = [sentence for page in pages for sentence in told(page, data=False)]
    assert prose
    assert [each for each, count in Counter(prose).items() if count > 1] == []
    for page in pages:
        assert [each for each, count in Counter(told(page, data=True)).items() if count > 1] == []


@report_
def test_every_command_of_a_page_is_parsed_and_finds_this_run(name: str) -> None:
    pages = render(REPORTS[name]().model_copy(update={"found_by": " --out there"}), None).values()
    printed = {line for page in pages for line in re.findall(r"`gates ([^`]+)`", page)}
    assert any(" --out there" in line for line in printed)
    for line in printed:
        known, command, args = cli.resolve_command(click.Context(cli), shlex.split(line))
        assert command is not None
        command.make_parser(click.Context(command)).parse_args(args)
        assert known != "explain" or not args or " --out there" in line


def test_many_criteria_and_causes_still_fit_on_the_page() -> None:
    names = [f"tests/test_core.py::test_{number}" for number in range(300)]
    crashes = [Location(path="pkg/core.py", line=number + 1) for number in range(300)]
    pairs = zip(names, crashes, strict=True)
    run = a_run(*(a_record(TestOutcome.FAILED, id=name, message="x", crash=crash) for name, crash in pairs))
    task = a_task(criteria=[a_criterion(id=f"AC{number}", line=number) for number in range(1, 41)])
    text = render(a_report(task, all_evidence(task, run)), None)["summary.md"]
    assert len(text.splitlines()) <= 60
    assert "28 more: see [business-logic.md]" in text
    assert re.search(r"\d+ more: see the pages of the gates", text)


def test_parameter_sets_of_one_test_are_one_cause() -> None:
    records = [a_record(TestOutcome.FAILED, id=f"tests/test_core.py::test_odd[{n}]", message=str(n)) for n in range(26)]
    report = a_report(a_task(), all_evidence(a_task(), a_run(*records)))
    (cause,) = _views.deciding(report)
    assert len({f.message for f in cause.findings}) == 26
    assert "(and 25 more like it)" in render(report, None)["summary.md"]


def test_each_rule_is_among_the_weak_spots_before_one_has_two() -> None:
    spots = [(rule, text) for rule in ("BL016", "EX005") for text in ("one", "two", "three")]
    found = [a_finding(Outcome.FAILED, rule=r, message=t, level="advisory", severity="low") for r, t in spots]
    assert [cause.rules for cause in _views.weak(found)[:2]] == [("BL016",), ("EX005",)]


def test_what_changed_since_the_last_run_is_told() -> None:
    old, new = passing(), blocking()
    text = render(new.model_copy(update={"since": since(old, new)}), None)["summary.md"]
    assert "**Since the last run**: (2026-01-02T03:04:05Z, PASS) AC1 PASS -> NOT IMPLEMENTED; AC2 PASS -> " in text
    slow = old.model_copy(update={"gates": tuple(g.model_copy(update={"duration_s": 90.0}) for g in old.gates)})
    taken = [since(old.model_copy(update={"taken": some}), slow) for some in ("", "of an earlier run")]
    assert ["-> 90 s" in said for said in taken] == [True, False]  # what was taken took no time of its own


def test_what_was_not_judged_is_told_as_not_checked() -> None:
    seen = missed()
    (noticed,) = seen.symbols
    other = noticed.model_copy(update={"symbol": "pkg.core:other", "end": End.NOT_TRIED, "why": "nobody knows"})
    task = a_task()
    for symbols, said in (((noticed,), False), ((other,), True), ((noticed, other), True)):
        report = a_report(task, all_evidence(task, seen.model_copy(update={"symbols": symbols})))
        assert any("nobody knows" in why for _, why in _views.unchecked(report)) is said
    failed = all_evidence(task, a_run(a_record(TestOutcome.FAILED)), seen.model_copy(update={"symbols": (other,)}))
    assert "inconclusive" not in _views.in_prose(a_report(task, failed))  # of what has failed


@pytest.mark.parametrize(("text", "is_told"), [("Runs 1.5x as fast", True), ("Returns the sum", False)])
def test_a_quantity_that_tests_alone_stand_for_is_told_as_not_checked(text: str, is_told: bool) -> None:
    report = passing()
    first, *others = report.criteria
    bare = first.model_copy(update={"text": text, "status": Status.PASS, "measures": ()})
    rows = _views.unchecked(report.model_copy(update={"criteria": (bare, *others)}))
    assert any(what == bare.id for what, _ in rows) is is_told


def test_what_is_said_again_of_its_criterion_is_told_once() -> None:
    pages = render(blocking(), None)
    assert len(re.findall(r"^### \d+\. .*EX004", pages["execution.md"], re.MULTILINE)) == 1
    (row,) = [line for line in pages["summary.md"].splitlines() if "pkg/__main__.py:3" in line]
    assert "| **AC1** `" in row


def with_templates(tmp_path: Path, **files: str) -> Path:
    return written(tmp_path, {f"{name.replace('_', '-')}.md.j2": text for name, text in files.items()})


def test_project_replaces_a_template_by_one_of_its_name(tmp_path: Path) -> None:
    folder = with_templates(tmp_path, summary="Mine: {{ report.headline }}\n", performance="# {{ gate.title }}\n")
    pages = render(blocking(), folder)
    assert pages["summary.md"] == "Mine: BLOCK\n"
    assert pages["performance.md"] == "# Performance Verification\n"
    assert pages["execution.md"] == render(blocking(), None)["execution.md"]


def test_template_of_a_project_is_escaped_too(tmp_path: Path) -> None:
    folder = with_templates(tmp_path, summary="{% for c in report.criteria %}{{ c.text }}\n{% endfor %}")
    assert "<script>" not in render(blocking(), folder)["summary.md"]


def test_project_extends_the_shipped_template_of_gates(tmp_path: Path) -> None:
    own = '{% extends "gate.md.j2" %}{% block lead %}Our own words.\n{% endblock %}'
    text = render(passing(), with_templates(tmp_path, execution=own))["execution.md"]
    assert "Our own words." in text
    assert "## Findings" in text


def test_broken_template_is_known_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"summary\.md\.j2:2:1: wrong template: .*[^.]; fix or remove "):
        check(with_templates(tmp_path, summary="fine\n{{ nothing"), passing())


@pytest.mark.parametrize(
    "text",
    ["{{ nothing }}", "{{ report.nothing }}", "{% include 'x' %}", "{{ 1 / 0 }}", "{{ 1 + 'a' }}", "{{ [][3] }}",
     "{{ report() }}", "{{ {}['x'] }}", "{% include 'summary.md.j2' %}",
     "{{ range(10 ** 9) }}"],
)  # fmt: skip
def test_template_that_fails_is_one_clear_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"/summary\.md\.j2:2:1: wrong template: [^\n]+; fix or [^\n]+$"):
        render(passing(), with_templates(tmp_path, summary=f"fine\n{text}\n"))


def test_shipped_template_that_fails_is_named_and_no_fault_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "shipped"
    shutil.copytree(markdown.IN_CHECKOUT, shipped)
    (shipped / "performance.md.j2").write_text("fine\n\n{{ nothing }}\n", encoding="utf-8")
    monkeypatch.setattr(markdown, "SHIPPED", shipped)
    for own in (None, tmp_path / "project/reports/templates"):
        with pytest.raises(GatesError, match=r"shipped/performance\.md\.j2:3:1: .* fault of gates") as caught:
            render(passing(), own)
        assert (caught.value.exit_code, "project" in str(caught.value)) == (4, False)
    own = with_templates(tmp_path / "own", execution="ours")
    with pytest.raises(UsageError, match=r"shipped/performance\.md\.j2:3:1: .* fix or remove what is wrong in"):
        render(passing(), own)


ATTACKS = {
    "class": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ views.ranked.__globals__ }}",
    "builtins": "{{ views.__builtins__ }}",
    "module": "{{ views.Counter.__init__.__globals__['sys'] }}",
    "format": "{{ '{0.__class__.__mro__}'.format(report) }}",
    "attribute filter": "{{ report | attr('__class__') }}",
    "loader": "{{ self.__init__.__globals__ }}",
    "import string": "{{ views.Finding.parse_raw('x', content_type='pickle', allow_pickle=True) }}",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attack", ATTACKS)
def test_malicious_template_runs_no_code(tmp_path: Path, attack: str) -> None:
    with pytest.raises(UsageError):
        render(passing(), with_templates(tmp_path / "templates", summary=ATTACKS[attack]))


@pytest.mark.parametrize(
    "text",
    ["{% set _ = report.criteria.append(1) %}", "{{ views.HEADLINES.clear() }}", "{{ views.SEVERITIES.clear() }}"],
)
def test_template_changes_nothing(tmp_path: Path, text: str) -> None:
    before = render(passing(), None)
    with pytest.raises(UsageError):
        render(passing(), with_templates(tmp_path, summary=text))
    assert render(passing(), None) == before
