"""What a task names is looked for before anything runs: a wrong path or rule is told in a second."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gates import pipeline
from gates.errors import EvidenceUnavailable
from gates.evidence.tests.test_records import followed
from gates.project.history import History, TwoStates, base_of
from gates.project.what_was_read import leads_nowhere
from gates.task import yaml_source
from gates.task.task import Task
from gates.task.yaml_source import Key, Problem, SourceError
from gates.words import did_you_mean, meant

PYTHON = re.compile(r"python[\d.]*")
DEFINED = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
MOST = 200  # names that a suggestion is looked for among


def refuse_what_is_missing(task: Task, path: Path, root: Path, base: str | None) -> None:
    """Raise `UsageError` with its place for each path, script and test of a task that was never there."""
    named = ((key, name, _missing(name, root)) for key, name in _named(task))
    _refuse(task, path, [(key, why) for key, name, why in named if why and not _was_there(name, root, base)])


def follow_moved(task: Task, root: Path, base: str | None) -> Task:
    """Return the task with its criteria bound to where the change has their code and tests, as far as git tells."""
    with suppress(EvidenceUnavailable):
        return followed(task, TwoStates.since_base(root, base))
    return task


def check_waived_rules(task: Task, path: Path) -> None:
    """Raise `UsageError` with `file:line:col` for each waiver whose rule no gate has."""
    named = [(i, waiver.rule) for i, waiver in enumerate(task.waivers) if waiver.rule]
    known = pipeline.rule_texts() if named else {}
    hints = [(i, f"{rule!r}{did_you_mean(rule, known)}") for i, rule in named if rule not in known]
    _refuse(task, path, [(("waivers", i, "rule"), f"there is no rule {hint}") for i, hint in hints])


def _refuse(task: Task, path: Path, wrong: Sequence[tuple[Key, str]]) -> None:
    """Raise `UsageError` for what is wrong, each with its place in the task file."""
    if wrong:
        document = yaml_source.read(path, task.path)
        raise SourceError(task.path, document.text, [Problem(*document.place(key), text) for key, text in wrong])


def _named(task: Task) -> Iterator[tuple[Key, str]]:
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
        if any(file.startswith(f"{path.rstrip('/')}/") for file in tree):
            return True
        blob = tree.get(path)
        if blob and (not test or test.encode() in history.read([blob]).get(blob.oid, b"")):
            return True
    return False


def _earlier(root: Path, base: str | None) -> Iterator[tuple[History, str]]:
    with suppress(EvidenceUnavailable):
        history = History(root)
        if head := history.commit("HEAD"):
            yield history, head
            yield history, base_of(history, base)[1]
