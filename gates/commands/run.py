"""What `gates run` does: load, check what can be checked before anything runs, run, publish."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from gates import kept, pipeline, progress, registry, store
from gates.bundles import handed_in
from gates.check import Evidence, EvidenceSet
from gates.child.guardian import Interrupted, every, guarded_folder, interrupted
from gates.code.symbols import refuse_unknown_names
from gates.commands.history import LoggedRun, intervals, log_run, since
from gates.config import Context, Project
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.measurements import Measurements
from gates.evidence.tests.test_records import followed
from gates.measuring import machine
from gates.model import Decision, Model
from gates.project.files import near, of_its_sources
from gates.project.history import History, TwoStates, asked_once, base_of
from gates.project.policy import TEMPLATES, Policy, found_at
from gates.project.what_was_read import leads_nowhere
from gates.render import Format, markdown, text
from gates.report import GateReport, Report
from gates.scan.loading import own_rules
from gates.stages import Gate
from gates.task import loading as spec
from gates.task import yaml_source
from gates.task.task import Selection, Task, narrowed
from gates.task.yaml_source import Key, Problem, SourceError
from gates.words import did_you_mean, grouped, in_shell, joined, meant, one_of

PARTIAL = "partial"
Say = Callable[[str], None]


class Request(Model):
    """What was asked for on the command line, defaults filled in."""

    task: str
    project: Project
    gates: tuple[str, ...]
    only: tuple[str, ...]
    out: Path | None
    formats: tuple[str, ...]
    keep_going: bool
    repeat: int = 1
    policy: Policy | None = None
    base: str | None = None
    goalposts: str | None = None
    evidence: tuple[Path, ...] = ()
    quiet: bool = False
    verbose: bool = False
    fresh: bool = False


@asked_once()
def perform(request: Request, *, say: Say) -> tuple[str, int]:
    """Run a task and publish its reports; return the summary and the exit code of the verdict."""
    known = {form.name: form for form in registry.values("gates.render", Format)}
    formats = [one_of(name, known, "there is no format") for name in request.formats]
    for name in request.gates:
        one_of(name, {gate.name: gate for gate in pipeline.discover()}, "there is no gate")
    home = request.policy.root if request.policy else request.project.root
    task = _checked(request, home)
    selection = Selection(gates=request.gates, only=request.only, keep_going=request.keep_going)
    whole = request.project.reports / task.id
    part = PARTIAL if selection.partial else ""  # it does not take the place of a whole report
    out = request.out or whole / part
    store.prepare(out)
    templates = home / TEMPLATES
    if templates.is_dir():
        markdown.check(templates, pipeline.draft(task))
    with guarded_folder() as folder, kept.installed(request.project) as installed:
        before = _last(out, task)
        report = _judged(request, task, _context(request, home, folder), selection, installed, before, say)
        if interrupted() and not part:
            out, before = out / PARTIAL, None
        elsewhere = f" {in_shell(['--out', str(near(out))])}" if out != whole else ""
        report = report.model_copy(update={"since": since(before, report) if before else "", "found_by": elsewhere})
        files = text.JSON.render(report, None)
        for chosen in formats:
            files |= chosen.render(report, templates)
        if (out / store.RESULT).is_file():
            files[store.PREVIOUS] = (out / store.RESULT).read_text(encoding="utf-8")
        pages = {"summary.md", "audit.md", "summary.txt", *(f"{gate.name}.md" for gate in report.gates)}
        store.publish(out, files, folder, obsolete=pages)
        if logged := not interrupted() and log_run(request.project.root, _logged(report, request)):
            say(f"note: this run is not in the history: {logged}")
    first = next(name for name in ("summary.md", "summary.txt", "result.json") if name in files)
    if interrupted():
        say(f"what was seen so far: {near(out / first)}")
        raise Interrupted
    more = text.details(report) if request.verbose else ""
    return f"{text.summary(report)}{more}\nreport: {near(out / first)}\n", report.verdict.exit_code


def _context(request: Request, home: Path, folder: Path) -> Context:
    """Return the world that a run looks at, with a folder for its raw files."""
    return replace(
        request.project.context(folder),
        repeat=request.repeat,
        today=datetime.now(UTC).date(),
        rules=home / request.project.settings.rules,
        base=request.base,
        goalposts=request.goalposts,
        policy=request.policy.at if request.policy else None,
        signers=request.project.settings.evidence_signers,
    )


def _checked(request: Request, home: Path) -> Task:
    """Load the task asked for, and look for all that it names; raise `UsageError` before anything runs."""
    task = _task(request, home)
    narrowed(task, *request.only)
    own_rules(home / request.project.settings.rules, home)
    if request.base:
        found_at(request.project.root, request.base, "--base")
    if home == request.project.root:  # a change that takes a name away is judged, and no mistake of the task
        named = ((key, name, _missing(name, home)) for key, name in _named(task))
        gone = [(key, why) for key, name, why in named if why and not _was_there(name, home, request.base)]
        _refuse(task, home / task.path, gone)
        refuse_unknown_names(task, home)
    task = follow_moved(task, request.project.root, request.base)
    root, committed = request.project.root, Path(request.project.settings.evidence, task.id)
    return task.model_copy(update={"bundles": handed_in(request.evidence, root / committed, task.id, root)})


def _judged(
    request: Request,
    task: Task,
    context: Context,
    asked: Selection,
    installed: Callable[[], str] | None,
    before: Report | None,
    say: Say,
) -> Report:
    """Run the gates; what an earlier run left of the same state, and of what is `installed`, is not collected again."""
    root, folder = request.project.root, context.evidence
    state = kept.state_of(task, context, asked) if installed else None
    earlier = None
    if state and installed and not request.fresh and (root / kept.STORE).is_dir():
        if whole := kept.again(root, state.name(installed()), task, context):
            return whole
        earlier = kept.find(root, state, installed(), folder)
        if not (earlier and earlier.whole):  # raw files may lie there of what another run took away meanwhile
            shutil.rmtree(folder)
            folder.mkdir()
    evidence = EvidenceSet({**earlier.whole} if earlier else {}, earlier=earlier)
    of_its_sources(root)
    before = None if before and before.taken else before  # what was taken took no time
    with _shown(say, _plan(task, asked, before), before, quiet=request.quiet) as shown:
        own = replace(context, rewritten=root / kept.REWRITTEN if installed else None)
        report = pipeline.run(task, own, asked, shown, evidence)
    report = report.model_copy(update={"taken": kept.said(earlier, evidence)})
    if state and installed and not (earlier and earlier.whole) and not interrupted():
        with asked_once():  # anew: whether it changed meanwhile
            after = kept.state_of(task, context, asked)
        if after == state:
            kept.keep(task, root, state.name(installed()), state, evidence, folder, report)
    return report


def _last(out: Path, task: Task) -> Report | None:
    """Return the report of a task that lies in the folder, if this version can read it; its tests are let go."""
    with suppress(UsageError):
        before = store.last(out, bare=True)
        return before if before and before.task.id == task.id else None
    return None


def _logged(report: Report, request: Request) -> LoggedRun:
    """Return what the log keeps of a run; numbers that are there already are not there twice."""
    return LoggedRun(
        **report.revision.model_dump(include={"commit", "dirty", "digest"}),
        task=report.task.id,
        at=report.started_at,
        machine=machine.name(),
        decision=report.verdict.decision,
        score=report.score.total,
        gates=tuple(gate.name for gate in report.gates if gate.ran),
        only=", ".join(request.only) or None,
        duration_s=report.duration_s,
        numbers={name: value for name, (value, _, _) in ({} if report.taken else intervals(report)).items()},
    )


def _task(request: Request, home: Path) -> Task:
    asked, root = request.task, request.project.root
    here = (Path.cwd() / asked).resolve()
    if home != root and (asked.endswith(spec.SUFFIXES) or "/" in asked) and here.is_relative_to(root):
        asked = str(home / here.relative_to(root))
    try:
        path = spec.find(asked, home / request.project.settings.tasks, home)
        task = spec.load(path, home)
        _check_waived_rules(task, path)
    except UsageError as error:
        if home == root or request.policy is None:
            raise
        raise UsageError(f"at {request.policy.at}: {str(error).replace(str(home), '').lstrip('/')}") from error
    if not path.resolve().is_relative_to(home):
        raise UsageError(f"{path}: the task file lies outside of the project {str(root)!r}; put it inside")
    return task


PYTHON = re.compile(r"python[\d.]*")
DEFINED = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
MOST = 200  # names that a suggestion is looked for among


def follow_moved(task: Task, root: Path, base: str | None) -> Task:
    """Return the task with its criteria bound to where the change has their code and tests, as far as git tells."""
    with suppress(EvidenceUnavailable):
        return followed(task, TwoStates.since_base(root, base))
    return task


def _check_waived_rules(task: Task, path: Path) -> None:
    """Raise `UsageError` with `file:line:col` for each waiver whose rule no gate has."""
    named = [(i, waiver.rule) for i, waiver in enumerate(task.waivers) if waiver.rule]
    known = pipeline.rule_texts() if named else {}
    hints = [(i, f"{rule!r}{did_you_mean(rule, known)}") for i, rule in named if rule not in known]
    _refuse(task, path, [(("waivers", i, "rule"), f"there is no rule {hint}") for i, hint in hints])


def _refuse(task: Task, path: Path, wrong: Sequence[tuple[Key, str]]) -> None:
    """Raise `UsageError` for what is wrong, each with its place in the task file."""
    if wrong:
        document = yaml_source.read(path, task.path, "a task")
        raise SourceError(task.path, document.text, [Problem(*document.place(key), text) for key, text in wrong])


def _named(task: Task) -> Iterator[tuple[Key, str]]:
    """Yield the paths, scripts and tests of a task, each of which must be there or have been, with its place."""
    for key in ("implementation", "tests"):
        yield from (((key, i), name) for i, name in enumerate(getattr(task, key)))
    for i, criterion in enumerate(task.criteria):
        yield from ((("criteria", i, "tests", j), name) for j, name in enumerate(criterion.tests))
    for i, entry in enumerate(task.entry_points):
        yield from _scripts(("entry_points", i, "run"), entry.run or ())
    for i, one in enumerate(task.measurements):
        yield from _scripts(("measurements", i, "run"), one.run or ())
        for name, arm in one.arms.items():
            for way in ("run", "time"):
                yield from _scripts(("measurements", i, "arms", name, way), getattr(arm, way) or ())


def _scripts(key: Key, words: Sequence[str]) -> Iterator[tuple[Key, str]]:
    if len(words) > 1 and PYTHON.fullmatch(words[0]) and words[1].endswith(".py") and "{" not in words[1]:
        yield (*key, 1), words[1]


def _missing(name: str, root: Path) -> str:
    path, *parts = name.split("::")
    there = root / path
    if not there.exists():
        return leads_nowhere(path, root)
    test = parts[-1].partition("[")[0] if parts else ""
    if test and there.is_file():
        text = there.read_text(encoding="utf-8", errors="replace")
        hint = meant(test, DEFINED.findall(text)[:MOST])
        if hint and not re.search(rf"\b{re.escape(test)}\b", text):
            return f"{path} has no test {test!r}{hint}"
    return ""


def _was_there(name: str, root: Path, base: str | None) -> bool:
    """Return whether the last commit, or the one that the change began at, has a path, and the test in it."""
    path, _, test = name.partition("::")
    test = test.rpartition("::")[2].partition("[")[0]
    for history, commit in _earlier(root, base):
        tree = history.tree(commit)
        blob = tree.get(path)
        there = blob and (not test or test.encode() in history.read([blob]).get(blob.oid, b""))
        if there or any(file.startswith(f"{path.rstrip('/')}/") for file in tree):
            return True
    return False


def _earlier(root: Path, base: str | None) -> Iterator[tuple[History, str]]:
    with suppress(EvidenceUnavailable):
        history = History(root)
        if head := history.commit("HEAD"):
            yield history, head
            yield history, base_of(history, base)[1]


HEARTBEAT_S = 30.0
WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _plan(task: Task, asked: Selection, before: Report | None) -> str:
    """Say what will run, how long the last run took, and which criteria ask for a device that is not here."""
    gates = [gate for gate in pipeline.discover() if not asked.gates or gate.name in asked.gates]
    last = f"; the last run took {before.duration_s:g} s" if before else ""
    measures = not task.bundles and any(Measurements in gate.uses for gate in gates)
    criteria = narrowed(task, *asked.only).criteria if measures else ()
    devices = [(measure.on, each.id) for each in criteria for measure in each.measures]
    absent = grouped(dict.fromkeys(one for one in devices if not machine.may_have(one[0])), lambda one: one[0])
    for device, asking in absent.items():
        last += f"; not decided here, for want of a {device} device: {joined([name for _, name in asking])}"
    return f"run of {', '.join(gate.name for gate in gates)}{last}"


@contextmanager
def _shown(say: Say, plan: str, before: Report | None, *, quiet: bool = False) -> Iterator[pipeline.Progress]:
    """Show each step: live on a terminal, elsewhere now and then; `before` is the last run, for what it took."""
    if quiet:
        yield pipeline.Progress(step=lambda *_: None, ended=lambda _: None)
        return
    begun, at = time.monotonic(), ["starting", ""]
    took = {gate.name: f", last time {gate.duration_s:g} s" for gate in before.gates} if before else {}

    def step(gate: Gate, number: int, kind: type[Evidence]) -> None:
        what = WORDS.sub(" ", kind.__name__).lower()
        at[:] = f"[stage {gate.stage}] {gate.name}: {what}, {number} of {len(gate.uses)}", took.get(gate.name, "")
        progress.so_far = str

    def now() -> str:
        done = progress.so_far()
        return f"{at[0]}{done and f'; {done}'}; {time.monotonic() - begun:.0f} s so far{at[1]}"

    say(plan)
    if not sys.stderr.isatty():
        with every(HEARTBEAT_S, lambda: say(now())):
            yield pipeline.Progress(step, ended=lambda report: say(_line(report)))
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    width = console.width - 2  # beside what turns
    with console.status("starting") as status, every(1, lambda: status.update(console.render_str(now()[:width]))):
        yield pipeline.Progress(step, ended=lambda report: console.print(_line(report)))


def _line(report: GateReport) -> str:
    head = f"[stage {report.stage}] {report.name}:"
    if not report.ran:
        return f"{head} NOT RUN: {report.not_run_because}"
    so_far = " so far" if report.decision is Decision.PASS else ""  # what later gates see may take it back
    return f"{head} {report.decision.value}{so_far} ({report.duration_s:g} s)"
