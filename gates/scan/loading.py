"""The loader of code rules: one YAML file a rule, everything wrong in one said with its place."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from gates.errors import UsageError
from gates.model import Model
from gates.scan.rule import Rule, RuleError, RuleForm, Vocabulary, compiled
from gates.task import yaml_source
from gates.task.yaml_source import Problem, SourceError, problem_of
from gates.words import did_you_mean

M = TypeVar("M", bound=Model)
SUFFIXES = (".yaml", ".yml")
EVENTS = "_events"
SHIPPED = Path(__file__).parents[1] / "rules"
NO_KEY = {  # any more, and what replaces it
    "require": "write 'inside: {pattern: module, not_has: ...}', and 'kept' for where it is there",
    "scope": "write 'not (... | turn)' in the order",
    "equals": "write 'regex: ^...$'",
    "is": "write 'type', or a pattern with the name",
    "from": "write a pattern of what makes it",
}


def load_rules(folder: Path | None = None, root: Path | None = None) -> dict[str, Rule]:
    """Load the shipped rules, and a project's in place of those of the same id; raise `UsageError` for wrong ones."""
    return {**_shipped(), **(own_rules(folder, root or folder.parent) if folder else {})}


def own_rules(folder: Path, root: Path) -> dict[str, Rule]:
    """Load the rules of a project, if it has some; raise `UsageError` that names everything wrong in them."""
    if not folder.is_dir():
        return {}
    from gates.scan.checking import failures  # what applies rules takes a while to import

    found = load_folder(folder, root)
    if wrong := [text for rule in found.values() for text in failures(rule)]:
        raise UsageError("\nerror: ".join(wrong))
    return found


@cache
def _shipped() -> Mapping[str, Rule]:
    return load_folder(SHIPPED, SHIPPED.parent.parent)


def load_folder(folder: Path, root: Path) -> dict[str, Rule]:
    """Load the rules of a folder; raise `UsageError` for broken ones and for an id that is given twice."""
    found, errors = dict[str, Rule](), list[str]()
    shared = cache(partial(vocabulary, folders=(folder / EVENTS, SHIPPED / EVENTS), root=root))
    files = (path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES and not path.name.startswith("."))
    for path in files:
        try:
            rule = load(path, root, shared)
            if rule.id in found:
                errors.append(f"{rule.source}:1:1: the rule {rule.id!r} is also in {found[rule.id].source}; keep one")
            found[rule.id] = rule
        except UsageError as error:
            errors.append(str(error))
    if errors:
        raise UsageError("\nerror: ".join(dict.fromkeys(errors)))
    return found


def load(path: Path, root: Path, shared: Callable[[str], Vocabulary]) -> Rule:
    """Load one rule; raise `UsageError` with `file:line:col` for what is wrong in it. `shared` finds vocabularies."""
    shown = yaml_source.shown(path, root)
    form, document = _read(path, shown, RuleForm)
    try:
        rule = compiled(form, shown, shared)
    except RuleError as error:
        place = document.place(document.written(error.key))
        raise SourceError(shown, document.text, [Problem(*place, str(error))]) from error
    places = {key: f"{shown}:{line}:{column}" for key, (line, column) in document.places.items()}
    return replace(rule, places=places, own=path.parent != SHIPPED)


def vocabulary(name: str, folders: tuple[Path, ...], root: Path) -> Vocabulary:
    """Load a shared vocabulary of events by its name."""
    known = {path.stem: path for folder in reversed(folders) if folder.is_dir() for path in sorted(folder.iterdir())}
    if name not in known:
        raise RuleError(("events",), f"there is no vocabulary of events {name!r}{did_you_mean(name, known)}")
    return _read(known[name], yaml_source.shown(known[name], root), Vocabulary)[0]


def _read(path: Path, shown: str, form: type[M]) -> tuple[M, yaml_source.Document]:
    document = yaml_source.read(path, shown, "a code rule")
    try:
        return form.model_validate(document.value), document
    except ValidationError as error:
        wrong = [problem_of(item, document, form, NO_KEY) for item in error.errors()]
        raise SourceError(shown, document.text, wrong) from error


def named(name: str, known: Mapping[str, Rule]) -> list[Rule]:
    """Return the rule of an id, or those of a tag."""
    return [known[name]] if name in known else [rule for rule in known.values() if name in rule.form.tags]


def unknown(name: str, known: Mapping[str, Rule]) -> str:
    """Return what to say of a name that is neither a rule nor a tag."""
    tags = {tag for rule in known.values() for tag in rule.form.tags}
    return f"there is no code rule or tag {name!r}{did_you_mean(name, [*known, *tags])}"
