"""The faults that a task declares: a text of a file replaced by another."""

from collections.abc import Iterator
from pathlib import Path

from gates.project.files import files_of
from gates.proving.making import Change
from gates.proving.proof import Source
from gates.proving.source import Text, compiles
from gates.task import yaml_source
from gates.task.fault import DeclaredFault
from gates.task.shape import is_typed
from gates.task.task import Criterion, Task
from gates.task.yaml_source import Problem, SourceError


def declared(criterion: Criterion, root: Path) -> list[Change]:
    """Return the declared faults of a criterion, which must have been checked."""
    return [change for fault in criterion.faults if isinstance(change := _change(fault, root), Change)]


def check(task: Task, path: Path, root: Path) -> None:
    """Raise `SourceError` with the place of each declared fault that cannot be put in as it is written."""
    faults = [(i, j, fault) for i, c in enumerate(task.criteria) for j, fault in enumerate(c.faults)]
    inside = set(files_of(task.implementation, root))
    wrong = [(i, j, *found) for i, j, fault in faults for found in _wrong(fault, root, inside)]
    if not wrong:
        return
    document = yaml_source.read(path, task.path, is_typed)
    problems = [Problem(*document.place(("criteria", i, "faults", j, key)), message) for i, j, key, message in wrong]
    raise SourceError(task.path, document.text, problems)


def _wrong(fault: DeclaredFault, root: Path, inside: set[Path]) -> Iterator[tuple[str, str]]:
    """Yield the key of a fault that is wrong, and what is wrong with it."""
    if root / fault.in_ not in inside:
        there = "lies outside of the implementation" if (root / fault.in_).is_file() else "does not exist"
        yield "in", f"{fault.in_!r} {there}; name a file of the implementation"
        return
    change = _change(fault, root)
    if isinstance(change, str):
        yield "replace", change
    elif change.text == change.file.text:
        yield "by", f"{fault.by!r} is what stands there already"
    elif change.file.path.endswith(".py") and not compiles(change.text):
        yield "by", f"{fault.in_}:{change.first} does not compile with {fault.by!r} in place of {fault.replace!r}"


def _change(fault: DeclaredFault, root: Path) -> Change | str:
    """Return a fault put in, or why it cannot be."""
    try:
        file = Text.read(root, fault.in_)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        return f"{fault.in_} cannot be taken for a fault: {error}"
    places = [i for i in range(len(file.text)) if file.text.startswith(fault.replace, i)]
    lines = ", ".join(str(file.text.count("\n", 0, place) + 1) for place in places[:5])
    if not places:
        return f"{fault.replace!r} does not occur in {fault.in_}; copy the text as it stands there"
    if fault.nth is None and len(places) > 1:
        return f"{fault.replace!r} occurs {len(places)} times in {fault.in_} (line {lines}); say which with 'nth'"
    if (fault.nth or 1) > len(places):
        return f"{fault.replace!r} occurs {len(places)} times in {fault.in_} (line {lines}), found nth: {fault.nth}"
    at = places[(fault.nth or 1) - 1]
    first = file.text.count("\n", 0, at) + 1
    text = file.text[:at] + fault.by + file.text[at + len(fault.replace) :]
    return Change(Source.DECLARED, fault.name, file, first, first + fault.replace.rstrip("\n").count("\n"), text)
