"""What task files name that is not there: paths that lead to no file, and code rules that there are not."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gates.model import Location
from gates.project.written_paths import loose_paths
from gates.tracing.matrix import Gap, Kind
from gates.tracing.task_trace import TaskTrace

if TYPE_CHECKING:
    from gates.scan.rule import Rule

RULE = "rule "  # how a binding to a rule begins


def loose_names(tasks: Iterable[TaskTrace], root: Path, rules: Path) -> Iterator[Gap]:
    """Yield a dead reference for each path and each code rule of some tasks that leads nowhere."""
    known: dict[str, Rule] | None = None
    for task in tasks:
        for loose in loose_paths(task.spots, task.path, root):
            yield Gap(kind=Kind.DEAD, criterion=task.id, message=loose.said, location=loose.location,
                      remediation="Mend the path, write the file, or take the path out.")  # fmt: skip
        asked = list(_rules(task))
        if asked and known is None:
            known = _known(root, rules)
        for name, criterion, place in asked:
            if problem := _problem(name, known or {}, of_criterion=criterion != task.id):
                yield Gap(kind=Kind.DEAD, criterion=criterion, message=problem, location=place,
                          remediation="Mend the name; `gates explain` shows a rule.")  # fmt: skip


def _rules(task: TaskTrace) -> Iterator[tuple[str, str, Location]]:
    """Yield each rule that a task asks for, by what asks for it: the task, or one of its criteria."""
    for key, name, line, _ in task.spots:
        if key == "rules":
            yield name, task.id, Location(path=task.path, line=line)
    for criterion in task.criteria:
        for binding in criterion.code:
            if binding.name.startswith(RULE) and binding.location is None:
                yield binding.name.removeprefix(RULE), f"{task.id}/{criterion.id}", binding.asked_at


def _known(root: Path, rules: Path) -> "dict[str, Rule]":
    """Return the shipped rules and the project's own; their examples are tried when they are applied."""
    from gates.scan.loading import SHIPPED, load_folder  # most tasks name none, and need not pay for the engine

    found = load_folder(SHIPPED, SHIPPED.parent.parent)
    return found | load_folder(rules, root) if rules.is_dir() else found


def _problem(name: str, known: "dict[str, Rule]", *, of_criterion: bool) -> str:
    """Return, in words, that there is no rule of a name; a criterion is bound to one rule, never to a tag."""
    from gates.scan.loading import named, unknown

    there = name in known if of_criterion else named(name, known)
    return "" if there else unknown(name, known).partition("; known: ")[0]
