"""The loader of code rules: one YAML file a rule, everything wrong in one said with its place."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from gates import rules as shipped_rules
from gates.errors import UsageError
from gates.scan.rule import Constraint, EventForm, OrderForm, Rule, RuleError, RuleForm, Vocabulary, compiled
from gates.task import yaml_source
from gates.task.yaml_source import Document, Problem, SourceError, did_you_mean

SUFFIXES = (".yaml", ".yml")
EVENTS = "_events"
SHIPPED = Path(shipped_rules.__path__[0])
MEMBER = re.compile(r"<\w+\.\w+: ('[^']*')>")  # how pydantic shows one of an enumeration
KEYS = {
    "where": sorted(Constraint.model_fields),
    "events": sorted(EventForm.model_fields),
    "never": sorted(OrderForm.model_fields),
    "always": sorted(OrderForm.model_fields),
}
NO_KEY = {  # any more, and what replaces it
    "require": "write 'inside: {pattern: module, not_has: ...}', and 'kept' for where it is there",
    "scope": "write 'not (... | turn)' in the order",
    "equals": "write 'regex: ^...$'",
    "is": "write 'type', or a pattern with the name",
    "from": "write a pattern of what makes it",
}
OF_AN_ORDER = OrderForm.model_fields.keys() - RuleForm.model_fields.keys()


def load_rules(folder: Path | None = None, root: Path | None = None) -> dict[str, Rule]:
    """Load the shipped rules and those of a project's folder, which come instead of shipped ones of the same id.

    Raise `UsageError` that names everything wrong in the rules of the project.
    """
    found = dict(_shipped())
    if folder is not None and folder.is_dir():
        found |= _own(folder, root or folder.parent)
    return found


def check_rules(folder: Path, root: Path) -> None:
    """Raise `UsageError` that names everything wrong in the code rules of a project's folder."""
    if folder.is_dir():
        _own(folder, root)


def _own(folder: Path, root: Path) -> dict[str, Rule]:
    """Load the rules of a project, each of which must keep its own examples."""
    from gates.scan.checking import failures  # what applies rules takes a while to import

    found = load_folder(folder, root)
    wrong = [text for rule in found.values() for text in failures(rule)]
    if wrong:
        raise UsageError("\nerror: ".join(wrong))
    return found


@cache
def _shipped() -> Mapping[str, Rule]:
    return load_folder(SHIPPED, SHIPPED.parent.parent)


def load_folder(folder: Path, root: Path) -> dict[str, Rule]:
    """Load the rules of a folder; raise `UsageError` for broken ones and for an id that is given twice."""
    found: dict[str, Rule] = {}
    errors: list[str] = []
    known: dict[str, Vocabulary] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in SUFFIXES or path.name.startswith("."):
            continue
        try:
            rule = load(path, root, (folder / EVENTS, SHIPPED / EVENTS), known)
        except UsageError as error:
            errors.append(str(error))
            continue
        if rule.id in found:
            errors.append(f"{rule.source}:1:1: the rule {rule.id!r} is also in {found[rule.id].source}; keep one")
        found[rule.id] = rule
    if errors:
        raise UsageError("\nerror: ".join(dict.fromkeys(errors)))
    return found


def load(path: Path, root: Path, vocabularies: Iterable[Path], known: dict[str, Vocabulary] | None = None) -> Rule:
    """Load one rule; raise `UsageError` with `file:line:col` for what is wrong in it. `known` are vocabularies read."""
    known = {} if known is None else known

    def shared(name: str) -> Vocabulary:
        if name not in known:
            known[name] = vocabulary(name, tuple(vocabularies), root)
        return known[name]

    shown = _shown(path, root)
    document = yaml_source.read(path, shown)
    if not isinstance(document.value, dict):
        raise SourceError(shown, document.text, [Problem(1, 1, "expected a mapping with the keys of a code rule")])
    try:
        form = RuleForm.model_validate(document.value)
    except ValidationError as error:
        raise SourceError(shown, document.text, [_problem(item, document) for item in error.errors()]) from error
    try:
        rule = compiled(form, shown, shared)
    except RuleError as error:
        place = document.place(_written(error.key, document))
        raise SourceError(shown, document.text, [Problem(*place, str(error))]) from error
    places = {key: f"{shown}:{line}:{column}" for key, (line, column) in document.places.items()}
    return replace(rule, places=places, own=path.parent != SHIPPED)


def vocabulary(name: str, folders: tuple[Path, ...], root: Path) -> Vocabulary:
    """Load a shared vocabulary of events by its name."""
    known = {path.stem: path for folder in reversed(folders) if folder.is_dir() for path in sorted(folder.iterdir())}
    if name not in known:
        raise RuleError(("events",), f"there is no vocabulary of events {name!r}{did_you_mean(name, known)}")
    shown = _shown(known[name], root)
    document = yaml_source.read(known[name], shown)
    try:
        return TypeAdapter(Vocabulary).validate_python(document.value)
    except ValidationError as error:
        raise SourceError(shown, document.text, [_problem(item, document) for item in error.errors()]) from error


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _written(key: yaml_source.Key, document: Document) -> yaml_source.Key:
    """Return the key as it stands in the file, where a single value may stand for a list of one."""
    found: yaml_source.Key = ()
    for part in key:
        if (*found, part) in document.places:
            found = (*found, part)
    return found


def _problem(error: ErrorDetails, document: Document) -> Problem:
    raw = tuple(part for part in error["loc"] if part != "own")
    key = _written(raw, document)
    name = str(raw[-1]) if raw else "rule"
    if error["type"] == "extra_forbidden":
        place = document.keys.get(raw) or document.key_place(key)
        if len(raw) == 1 and name in OF_AN_ORDER:
            shown = "order: ..." if name == "order" else f"order: ..., {name}: ..."
            return Problem(*place, f"{name!r} is no key of a rule but of an order: never: {{{shown}}}")
        if name in NO_KEY:
            return Problem(*place, f"{name!r} is gone: {NO_KEY[name]}")
        known = KEYS.get(str(raw[0])) if len(raw) > 2 else None
        fields = known or [field.alias or key for key, field in RuleForm.model_fields.items()]
        return Problem(*place, f"unknown key {name!r}{did_you_mean(name, fields)}")
    if error["type"] == "missing":
        return Problem(*document.place(key), f"missing key {name!r} of a code rule")
    if error["type"] == "value_error":
        return Problem(*document.place(key), str(error["ctx"]["error"]))
    found = f", found {error['input']!r:.80}" if isinstance(error["input"], str) else ""
    message = MEMBER.sub(r"\1", error["msg"]).replace("Input should be", "expected").replace("valid tuple", "list")
    return Problem(*document.place(key), f"{name}: {message[0].lower()}{message[1:]}{found}")


def named(name: str, known: Mapping[str, Rule]) -> list[Rule]:
    """Return the rule of an id, or those of a tag."""
    return [known[name]] if name in known else [rule for rule in known.values() if name in rule.form.tags]


def unknown(name: str, known: Mapping[str, Rule]) -> str:
    """Return what to say of a name that is neither a rule nor a tag, or that was one once."""
    tags = {tag for rule in known.values() for tag in rule.form.tags}
    hint = did_you_mean(name, [*known, *tags])
    instead = next((answer for begin, answer in GONE.items() if name.startswith(begin)), "")
    if instead and "did you mean" not in hint:
        return f"the code rule {name!r} is gone: {instead}"
    return f"there is no code rule or tag {name!r}{hint}"


GONE = {  # by how their names begin, what answers instead of rules that there were once
    "amp-": "the recorder sees it (`training_steps`)",
    "bench-": "the gate times the arms itself (`arms`)",
    "eval-": "a test of the evaluation shows it",
    "leak-": "the leak probe sees it (`leaks`)",
    "perf-": "the hot path counts it (`hot_paths`)",
    "returned-": "a test or an entry point that calls it shows it",
    "swallowed-": "ruff finds it (BLE001, S110), as SARIF",
}
