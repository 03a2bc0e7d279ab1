"""The examples of a code rule, which are its tests: does it find the lines that they mark, and no others?"""

from collections.abc import Iterator

from gates.scan.engine import Endless, Scanner, limited
from gates.scan.program.reading import project_of
from gates.scan.rule import Rule
from gates.task.yaml_source import Key

HERE = "# <- here"
FILE = "example.py"


def failures(rule: Rule) -> Iterator[str]:
    """Yield what a rule's examples show to be wrong with it, each with its place."""
    for kind, texts in (("good", rule.form.good), ("bad", rule.form.bad)):
        for i, text in enumerate(texts):
            key: Key = (kind, i) if (kind, i) in rule.places else (kind,)
            for problem in _failures(rule, text, f"the {kind} example {i + 1}", bad=kind == "bad"):
                yield f"{rule.place(key)}: {problem}"


def _failures(rule: Rule, text: str, name: str, *, bad: bool) -> Iterator[str]:
    marked = {number for number, line in enumerate(text.splitlines(), 1) if HERE in line} if bad else set()
    if bad and not marked:
        yield f"{name} marks no line; write {HERE!r} at the end of each line that the rule must find"
        return
    found, undecided = _found(rule, text)
    if undecided:
        yield f"{name} is not decided: {undecided}"
    elif not found & marked and bad:
        yield f"{name} is not found by the rule (line {min(marked)})"
    else:
        for line in sorted(marked - found):
            yield f"{name} is not found at its line {line}, which is marked {HERE!r}"
        for line in sorted(found - marked):
            yield f"{name} is found at its line {line}" + (f", which is not marked {HERE!r}" if bad else "")


def _found(rule: Rule, text: str) -> tuple[set[int], str]:
    """Return the lines of an example that break the rule, and why that is not decided."""
    project = project_of({FILE: text.encode()})
    if project.unparsed:
        return set(), project.unparsed[0].removeprefix(f"{FILE}:")
    try:
        with limited():
            sites = Scanner(project).sites(rule)
    except RecursionError:
        return set(), "it is nested too deep to be followed"
    except Endless as error:
        return set(), str(error)
    undecided = next((f"{site.line}: {site.message}" for site in sites if site.undecided), "")
    return {site.line for site in sites if not site.ok}, undecided
