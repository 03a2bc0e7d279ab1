"""The command line, as real processes on a tiny real project: exit codes, streams, bad input, Ctrl-C."""

import functools
import hashlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from building import (
    GOOD,
    LIGHT,
    PATIENCE_S,
    ROOT,
    TASK_FILE,
    Ended,
    a_project,
    awaited,
    clean,
    gates,
    raw_samples,
    result,
    written,
)

from gates import pipeline
from gates.commands import run

PAGES = ("summary.md", "audit.md", "execution.md", "business-logic.md", "performance.md")


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A project that passes, after its first run, which says all the time how far it is; tests only read it."""
    project = a_project(tmp_path_factory.mktemp("passing"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "HEARTBEAT_S", 0.01)
        return project, gates(project, "run", "T1")


def light(tmp_path: Path, symbol: str = "double") -> Path:
    """A project whose task runs no process: INCONCLUSIVE, or BLOCK where the symbol is not there."""
    return a_project(tmp_path, {"tasks/T1.yaml": LIGHT % symbol})


def pages(project: Path) -> dict[str, bytes]:
    return {p.relative_to(project).as_posix(): p.read_bytes() for p in (project / "reports").rglob("*") if p.is_file()}


def assert_refused(ended: Ended, *words: str) -> None:
    """Exit code 2, nothing on stdout, and on stderr one line of what is wrong."""
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (2, "", 1)
    assert ended.err.startswith("error: ")
    for word in words:
        assert word in ended.err


def test_pass_is_0_and_writes_every_report(passing: tuple[Path, Ended]) -> None:
    project, ended = passing
    assert ended.code == 0
    assert ended.out.startswith("PASS  T1 Doubling  (exit code 0, score 100/100)\n")
    assert ended.out.endswith("report: reports/T1/summary.md\n")
    assert {p.name for p in (project / "reports/T1").iterdir()} == {*PAGES, "result.json", "evidence"}


def test_progress_is_a_line_at_the_start_and_one_a_gate_on_stderr(passing: tuple[Path, Ended]) -> None:
    start, *lines = passing[1].err.splitlines()
    assert start == "run of execution, business-logic, performance"
    beats = [line for line in lines if line.endswith(" s so far")]
    assert [line.split(":")[0] for line in lines if line not in beats] == [
        "[stage 2] execution", "[stage 2] business-logic", "[stage 4] performance"
    ]  # fmt: skip
    assert any("execution: pytest run, 1 of 4; test 1 of 1; " in beat for beat in beats)


def test_every_digest_of_the_evidence_is_that_of_the_file(passing: tuple[Path, Ended]) -> None:
    project, _ = passing
    for file in result(project)["evidence"]:
        data = (project / "reports/T1/evidence" / file["path"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (file["sha256"], file["bytes"])
    kept = {p.relative_to(project / "reports/T1/evidence").as_posix()
            for p in (project / "reports/T1/evidence").rglob("*") if p.is_file()}  # fmt: skip
    assert kept == {file["path"] for file in result(project)["evidence"]}


def test_second_run_prints_the_same_bytes_but_for_times(passing: tuple[Path, Ended], tmp_path: Path) -> None:
    project, _ = passing
    formats = [word for name in ("text", "markdown", "json") for word in ("--format", name)]
    ended = gates(project, "run", "T1", "-v", "--out", tmp_path, *formats)
    assert ended.code == 0
    assert (tmp_path / "summary.txt").read_text(encoding="utf-8").startswith("PASS  T1")
    assert f"next:  gates explain T1 --out {tmp_path}" in ended.out
    assert re.search(r"^PASS +business-logic +BL001  AC1 is traced to live code: ", ended.out, re.MULTILINE)
    assert "business-logic: PASS so far" in ended.err  # what later gates see may take it back
    for page in PAGES:
        first, second = ((folder / page).read_text(encoding="utf-8") for folder in (project / "reports/T1", tmp_path))
        assert timeless(first) == timeless(second.replace(f" --out {tmp_path}", ""))


def timeless(text: str) -> str:
    """A page without durations, start times, peaks of memory, and the sizes and digests of raw files."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r"\b\d+\.\d+( s\b| \|)", r"SECONDS\1", text)
    text = re.sub(r"\b\d+ MiB\b", "MEMORY", text)
    return re.sub(r"(`evidence/[^`]*` \|) \d+ \| `[0-9a-f]{64}`", r"\1 DIGEST", text)


def test_exit_code_is_the_same_for_every_format_and_no_page_of_an_earlier_run_stays(tmp_path: Path) -> None:
    for symbol, code in (("double", 3), ("treble", 1)):
        for form in (("json",), ("markdown", "text", "json")):
            words = (word for name in form for word in ("--format", name))
            assert gates(light(tmp_path, symbol), "run", "T1", *words).code == code
            assert result(tmp_path)["verdict"]["exit_code"] == code
            assert bool([*(tmp_path / "reports/T1").glob("*.md")]) is ("markdown" in form)


USAGE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "missing task": (("run", "T2"), ("no task 'T2' in 'tasks'", "known: T1")),
    "task in other letters": (("run", "t1"), ("no task 't1' in 'tasks'", "did you mean 'T1'?")),
    "missing file": (("run", "tasks/T2.yaml"), ("no task file 'tasks/T2.yaml'",)),
    "directory": (("run", "tasks/"), ("tasks:1:1: expected a task file, found a directory",)),
    "unknown gate": (("run", "T1", "--gate", "perfomance"), ("did you mean 'performance'?",)),
    "unknown format": (("run", "T1", "--format", "markdwon"), ("did you mean 'markdown'?",)),
    "unknown criterion": (("run", "T1", "--only", "AC11"), ("T1 has no criterion 'AC11'", "did you mean 'AC1'?")),
    "unknown option": (("run", "T1", "--onyl", "x"), ("Did you mean '--only'?", "(gates run --help)")),
    "unknown command": (("rnu", "T1"), ("No such command 'rnu'. Did you mean 'run'?",)),
    "no task": (("run",), ("TASK",)),
    "time limit of 0": (("run", "T1", "--timeout", "0"), ("--timeout",)),
    "endless time limit": (("run", "T1", "--timeout", "inf"), ("--timeout",)),
    "unknown rule": (("explain", "PF0001"), ("there is no rule 'PF0001'", "did you mean 'PF001'")),
    "unknown criterion to explain": (("explain", "T1", "AC9"), ("did you mean 'AC",)),
    "unknown rule of a task": (("explain", "T1", "PF01"), ("did you mean 'PF001'?",)),
    "unknown subject": (("explain", "T9"), ("no task 'T9'", "known: T1")),
    "task with letters turned": (("run", "1T"), ("did you mean 'T1'?",)),
    "unknown schema": (("schema", "reslut"), ("did you mean 'result'?", "(gates schema --help)")),
    "unknown device": (("measure", "T1", "--on", "cudda"), ("'--on': 'cudda'; did you mean 'cuda'?",)),
    "unknown form": (("trace", "--format", "markdwon"), ("did you mean 'markdown'?",)),
    "unknown code rule": (("rules", "amp-step-ordr"), ("did you mean 'amp-step-order'?",)),
    "unknown rule to check": (("check", "--rule", "no-cuda-anp"), ("did you mean 'no-cuda-amp'?",)),
    "file in the way": (("run", "T1", "--out", "bench.py"), ("reports cannot be written into 'bench.py'", "--out")),
    "path under a file": (("run", "T1", "--out", "bench.py/x"), ("reports cannot be written into", "--out")),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_usage_is_2_with_one_clear_line(passing: tuple[Path, Ended], case: str) -> None:
    args, words = USAGE[case]
    assert_refused(gates(passing[0], *args), *words)


def test_bad_task_file_is_2_and_touches_no_report(tmp_path: Path) -> None:
    task, page = b"id: T1\ntitle: \xff\n", "the last good one"
    project = a_project(tmp_path, {"tasks/T1.yaml": task, "reports/T1/summary.md": page})
    assert_refused(gates(project, "run", "T1"), "tasks/T1.yaml:2:8: byte 0xff is not UTF-8")
    assert pages(project) == {"reports/T1/summary.md": b"the last good one"}


def test_task_file_outside_of_the_project_is_no_crash(tmp_path: Path) -> None:
    outside = written(tmp_path, {"T1.yaml": LIGHT % "double"}) / "T1.yaml"
    assert gates(light(tmp_path / "project"), "run", outside).code in {2, 3}


def test_bad_configuration_is_2(tmp_path: Path) -> None:
    written(tmp_path, {**GOOD, "pyproject.toml": "[tool.gates]\ntimeot_s = 3\n"})
    ended = gates(tmp_path, "run", "T1")
    assert_refused(ended, "pyproject.toml:2:1: unknown key 'timeot_s'", "did you mean 'timeout_s'?")


@pytest.mark.parametrize("template", [b"caf\xe9", b"{{ nothing.at.all }}"], ids=["no text", "unknown name"])
def test_broken_template_of_a_project_is_one_clear_line(tmp_path: Path, template: bytes) -> None:
    project = light(tmp_path)
    written(project, {"reports/templates/summary.md.j2": template})
    ended = gates(project, "run", "T1")
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].startswith("error: ")
    assert "template" in ended.err
    assert "run of execution" not in ended.err
    assert not (project / "reports/T1/result.json").exists()


CRASHES = {
    "while it is loaded": "import sys\nsys.modules['gates.cli'] = None\n",
    "without its command line library": "import sys\nsys.modules['click'] = None\n",
    "in a gate": (
        "import sys\nif 'gates' in sys.orig_argv:\n"
        "  import gates.stages as p, dataclasses\n"
        "  bad = dataclasses.replace(p.PERFORMANCE.checks[0], judge=lambda task, evidence: [1 / 0])\n"
        "  p.PERFORMANCE = dataclasses.replace(p.PERFORMANCE, checks=(bad,))\n"
    ),
}


@pytest.mark.parametrize("case", CRASHES)
def test_crash_of_the_tool_is_4_and_never_looks_like_a_verdict(tmp_path: Path, case: str) -> None:
    project = light(tmp_path / "project")
    broken = written(tmp_path / "broken", {"sitecustomize.py": CRASHES[case]})
    ended = gates(project, "run", "T1", env={"PYTHONPATH": f"{broken}:{ROOT}"})
    assert ended.code == 4
    assert ended.out == ""
    assert "Traceback" in ended.err
    assert not (project / "reports/T1/result.json").exists()


def test_list_shows_tasks_criteria_and_last_verdicts(passing: tuple[Path, Ended], tmp_path: Path) -> None:
    ended = gates(passing[0], "list")
    assert (ended.code, ended.err) == (0, "")
    first, *rest = ended.out.splitlines()
    assert first.startswith("T1  Doubling  [PASS on ")
    assert [line.split()[:3] for line in rest] == [["AC1", "must", "PASS"], ["AC2", "must", "PASS"]]


def test_list_names_a_broken_task_and_shows_the_others(tmp_path: Path) -> None:
    ended = gates(a_project(tmp_path, {"tasks/T2.yaml": "id: T2\n"}), "list")
    assert ended.code == 2
    assert ended.out.startswith("T1  Doubling  [never run]\n")
    assert "error: tasks/T2.yaml:1:1: missing key" in ended.err


def test_explain_shows_the_shortest_example_of_each_kind_and_where_the_others_are(tmp_path: Path) -> None:
    ended = gates(a_project(tmp_path), "explain", "amp-clip-before-unscale")
    assert ended.code == 0
    assert [line for line in ended.out.splitlines() if line in {"  good:", "  bad:"}] == ["  good:", "  bad:"]
    assert "more examples: gates/rules/amp-clip-before-unscale.yaml" in ended.out.splitlines()[-1]


def test_list_and_explain_show_no_control_characters(tmp_path: Path) -> None:
    evil = (LIGHT % "double").replace("Doubling", '"\\e[2J\\u202eevil"').replace("Double a number", '"\\e]0;evil"')
    project = a_project(tmp_path, {"tasks/T1.yaml": evil})
    for args in (("list",), ("explain", "T1"), ("explain", "T1", "AC1"), ("run", "T1")):
        ended = gates(project, *args)
        assert "\x1b" not in ended.out + ended.err
        assert "\u202e" not in ended.out + ended.err


EXPLAINED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rule": (("PF001",), ("PF001: A target is met by its interval",)),
    "rule of the runner": (("GT002",), ("GT002: The files did not change",)),
    "code rule": (("amp-step-order",), ("amp-step-order (critical)", "good:", "bad:", "fix:")),
    "task": (("T1",), ("verdict of ", "PASS", "AC1 PASS: Double a number", "  code  ", "  test  ",
                       "  measure  ", "tests/test_core.py::test_double")),
    "criterion": (("T1", "AC1"), ("T1 AC1 (must): Double a number", "asked for in tasks/T1.yaml:9", "AC1 PASS: ",
                                   "tests/test_core.py::test_double", "evidence: evidence/pytest/run.stdout.txt")),
    "rule of a task": (("T1", "PF001"), ("PF001: A target", "ratio old/new", "2 [2, 2] from",
                                         "evidence: evidence/measurements/bench-any.json")),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPLAINED)
def test_explain_walks_from_verdict_to_raw_file(passing: tuple[Path, Ended], case: str) -> None:
    args, words = EXPLAINED[case]
    ended = gates(passing[0], "explain", *args)
    assert (ended.code, ended.err) == (0, "")
    for word in words:
        assert word in ended.out


@functools.cache
def schema(name: str) -> Any:
    return json.loads(gates(ROOT, "schema", name).out)


@pytest.mark.parametrize("name", ["result", "task", "samples"])
def test_schema_is_a_valid_json_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def valid(name: str, value: object) -> bool:
    return not list(jsonschema.Draft202012Validator(schema(name)).iter_errors(value))


def test_result_is_valid_under_its_schema(passing: tuple[Path, Ended]) -> None:
    good = result(passing[0])
    assert valid("result", good)
    assert not valid("result", {**good, "extra": 1})
    assert not valid("result", {key: value for key, value in good.items() if key != "verdict"})
    assert {"schema", "task", "revision", "environment", "verdict", "score", "gates", "criteria"} <= good.keys()


class Plain(yaml.SafeLoader):
    """YAML in which `on` is a word, as it is for gates."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # of the class, as in its parent
        first: [(tag, form) for tag, form in forms if not tag.endswith(":bool")]
        for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def test_task_files_and_samples_are_valid_under_their_schema() -> None:
    for text in (TASK_FILE, *(path.read_text(encoding="utf-8") for path in (ROOT / "tasks").glob("*.yaml"))):
        task = yaml.load(text, Loader=Plain)  # a safe loader
        assert valid("task", task)
        assert not valid("task", {**task, "titel": "x"})
        assert not valid("task", {**task, "criteria": []})
    assert valid("samples", raw_samples())
    assert not valid("samples", {**raw_samples(), "speedup": 1.72})


@pytest.mark.parametrize("args", [("--help",), ("run", "--help"), ("--version",)])
def test_help_is_a_result(tmp_path: Path, args: tuple[str, ...]) -> None:
    ended = gates(tmp_path, *args)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out


@pytest.mark.parametrize("args", ["explain T1 AC1", "--help"])
@pytest.mark.parametrize(
    ("out", "code"), [("| true", 141), ("2>&1 | true", 141), (">/dev/full", 4), (">/dev/full 2>&1", 4)]
)
def test_output_that_nobody_takes_is_no_verdict(passing: tuple[Path, Ended], args: str, out: str, code: int) -> None:
    line = f"{sys.executable} -m gates {args} {out}; exit ${{PIPESTATUS[0]}}"
    env = clean({"PYTHONUNBUFFERED": ""})  # as a shell has it
    done = subprocess.run(["bash", "-c", line], cwd=passing[0], env=env, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == code
    told = b"error: disk: No space left on device; this says nothing of the change\n"
    assert done.stderr == (told if out == ">/dev/full" else b"")


def test_a_terminal_names_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", err := type("Terminal", (io.StringIO,), {"isatty": lambda _: True})())
    monkeypatch.setenv("TERM", "xterm")
    with run._shown(lambda line: print(line, file=err), "run", None) as shown:
        shown.step(gate := pipeline.discover()[0], 1, gate.uses[0])
        told = r"\[stage 2\] execution: [a-z ]+, 1 of \d+; \d+ s so far"
        awaited(lambda: re.search(told, err.getvalue()) is not None)
