"""YAML read with the place of every value, and without the surprises of YAML 1.1.

Scalars stay text (the model gives them their types, so `no` is never `False` and `1e-3` is a number); only an empty
value, `~` and `null` are `None`. Where no model knows the type (`as_json`), they are what JSON says.
Duplicate keys, aliases, tags, and nesting beyond all sense are errors.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias, get_args, get_origin

import yaml
from pydantic_core import ErrorDetails

from gates.errors import UsageError
from gates.model import Model
from gates.words import did_you_mean, meant, place_in

MAX_BYTES, MAX_DEPTH = 256 * 1024, 20
LIBYAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
OFF = "this line does not fit those around it; expected the same indentation as its neighbours"

Value: TypeAlias = "str | list[Value] | Table | None"
Key: TypeAlias = tuple[str | int, ...]


class Plain(str):
    """A scalar that is written without quotes."""

    __slots__ = ()


class Table(dict[str, Value]):
    """A mapping, and the line that it begins in."""

    line = 1


class Problem(NamedTuple):
    """One thing wrong in a file: where, what, and what to write instead."""

    line: int
    column: int
    message: str


class SourceError(UsageError):
    """Everything that is wrong in one file, each with its place and the offending line."""

    def __init__(self, path: str, text: str, problems: Iterable[Problem]) -> None:
        lines = text.splitlines()
        super().__init__("\nerror: ".join(_shown(path, problem, lines) for problem in sorted(set(problems))))


@dataclass
class Document:
    """A YAML file: its value, and the line and column (from 1) of every key and value in it."""

    text: str
    value: Table = field(default_factory=Table)
    places: dict[Key, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def place(self, key: Key) -> tuple[int, int]:
        """Return where the value stands, or else the nearest value around it."""
        while key not in self.places and key:
            key = key[:-1]
        return self.places.get(key, (1, 1))

    def written(self, key: Iterable[str | int]) -> Key:
        """Return a key as it stands in the file, without the parts that only a model has."""
        found: Key = ()
        for part in key:
            found = (*found, part) if {(*found, part)} & {*self.places, *self.keys} else found
        return found

    def key_place(self, key: Key) -> tuple[int, int]:
        """Return where the key itself is written, or else its value."""
        return self.keys.get(key) or self.place(key)


def read(path: Path, shown_as: str, of: str) -> Document:
    """Read a mapping with the keys `of` something; raise `UsageError` with `file:line:col` and what was expected."""
    text = text_of(path, shown_as, MAX_BYTES)
    if problems := _refused_events(text, LIBYAML):  # those of PyYAML's own reader say where and what more plainly
        raise SourceError(shown_as, text, _refused_events(text, yaml.SafeLoader) or problems)
    document = Document(text)
    if (node := yaml.compose(text, Loader=LIBYAML)) is None:
        raise SourceError(shown_as, text, [Problem(1, 1, "the file is empty, expected a mapping of keys")])
    value = _build(node, (), document, problems)
    if problems or not isinstance(value, Table):
        raise SourceError(shown_as, text, problems or [Problem(1, 1, f"expected a mapping with the keys of {of}")])
    document.value = value
    return document


def as_json(value: object) -> object:
    """Return a value with its plain scalars as JSON reads them: a number, true or false; else they are text."""
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    if not isinstance(value, Plain):
        return value
    try:
        found = json.loads(value, parse_constant=str)
    except ValueError:
        return str(value)
    return found if isinstance(found, bool | int | float) else str(value)


def text_of(path: Path, shown_as: str, most: int) -> str:
    """Return the text of a file of so many bytes at most; raise `UsageError` where it has none."""
    try:
        if path.is_dir():
            raise UsageError(f"{shown_as}:1:1: expected a task file, found a directory")
        if (size := path.stat().st_size) > most:
            raise UsageError(f"{shown_as}:1:1: the file has {size} bytes, expected at most {most}; split it")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{shown_as}:1:1: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        raise UsageError(f"{shown_as}:{place_in(error)}: {byte} is not UTF-8; save the file as UTF-8") from error


def _refused_events(text: str, loader: type[yaml.SafeLoader]) -> list[Problem]:
    """Walk the events, which needs no recursion, and return what the composer must not see."""
    problems: list[Problem] = []
    depth = documents = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            here = _place(event.start_mark)
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                problems.append(Problem(*here, "anchors and aliases are not allowed; write the value out"))
            elif tag := getattr(event, "tag", None):
                problems.append(Problem(*here, f"the tag {tag!r} is not allowed; write a plain value"))
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1 and isinstance(event, yaml.DocumentStartEvent):
                problems.append(Problem(*here, "a second document; one file holds one task"))
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                problems.append(Problem(*here, f"nested more than {MAX_DEPTH} deep"))
                return problems
    except yaml.MarkedYAMLError as error:
        what = OFF if str(error.problem).startswith("expected <block end>") else error.problem
        return [Problem(*_place(error.problem_mark or error.context_mark), f"not valid YAML: {what}")]
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        return [Problem(line, column, f"the character #x{error.character:04x} is not allowed in YAML; remove it")]
    return problems


def _build(node: yaml.Node, key: Key, document: Document, problems: list[Problem]) -> Value:
    document.places[key] = _place(node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        if node.style:
            return str(node.value)
        return None if node.value in {"", "~", "null"} else Plain(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*key, i), document, problems) for i, item in enumerate(node.value)]
    result = Table()
    result.line = node.start_mark.line + 1
    for name_node, value_node in node.value:
        place = _place(name_node.start_mark)
        if not isinstance(name_node, yaml.ScalarNode):
            problems.append(Problem(*place, "a key must be plain text"))
        elif (name := str(name_node.value)) in result:
            first = document.keys[(*key, name)][0]
            problems.append(Problem(*place, f"duplicate key {name!r}, first in line {first}; keep one"))
        else:
            document.keys[(*key, name)] = place
            result[name] = _build(value_node, (*key, name), document, problems)
    return result


def _place(mark: "yaml.Mark | yaml._yaml.Mark | None") -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _shown(path: str, problem: Problem, lines: list[str]) -> str:
    """Return the message, then the offending line with a mark under the column."""
    head = f"{path}:{problem.line}:{problem.column}: {problem.message}"
    if problem.line > len(lines) or not lines[problem.line - 1].strip():
        return head
    start = max(0, problem.column - 60)
    text = "".join(c if c.isprintable() else " " for c in lines[problem.line - 1][start : start + 110])
    return f"{head}\n  {problem.line:>5} | {text}\n        | {' ' * (problem.column - 1 - start)}^"


PAIRS = {"ratio", "reduction", "difference"}
FORMS = {
    "symbol": "'package.module:Name' or 'package.module:Class.method'",
    "id": "a letter, then letters, digits, '.', '_' or '-'",
    "text": "some text",
    "title": "some text",
}


def problem_of(error: ErrorDetails, document: Document, model: type[Model], gone: Mapping[str, str]) -> Problem:
    """Turn one complaint of pydantic about a file into a place and a line for people; `gone` are keys of old."""
    raw, key, kind = tuple(error["loc"]), document.written(error["loc"]), error["type"]
    found = f", found {error['input']!r:.80}" if isinstance(error["input"], (str, int, float)) else ""
    pair = next((raw[: i + 1] for i, part in enumerate(raw) if part in PAIRS), None)
    if pair and kind in {"missing", "too_long", "tuple_type"}:
        return Problem(*document.place(pair), f"{_what(pair)}: expected two arms, such as [fp32, amp]")
    if kind == "extra_forbidden":
        name = str(raw[-1])
        replaced = gone.get(".".join(part for part in raw if isinstance(part, str))) or gone.get(name)
        unknown = f"unknown key {name!r}{did_you_mean(name, known_keys(model, raw[:-1]))}"
        return Problem(*document.key_place(key), f"{name!r} is gone: {replaced}" if replaced else unknown)
    if kind == "reserved":
        return Problem(*document.key_place((*raw, "line")), error["msg"])
    if kind == "missing":
        return Problem(*document.place(key), f"missing key {raw[-1]!r} in {_what(document.written(raw[:-1]))}")
    if kind in {"too_short", "string_too_short"}:
        wanted = "some text" if kind == "string_too_short" else "at least one entry"
        return Problem(*document.key_place(key), f"{raw[-1]!r} is empty, expected {wanted}")
    if kind == "string_pattern_mismatch":
        form = FORMS.get(str(key[-1]), f"a name that matches {error['ctx']['pattern']}")
        return Problem(*document.place(key), f"{_what(key)}: expected {form}{found}")
    if kind in {"enum", "literal_error"}:
        expected = re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", error["ctx"]["expected"])  # of an enumeration its values
        hint = meant(str(error["input"]), re.findall(r"'([^']*)'", expected))
        return Problem(*document.place(key), f"expected {expected}{found}{hint}")
    if kind == "value_error":
        return Problem(*document.place(key), str(error["ctx"]["error"]))
    message = error["msg"].replace("Input should be", "expected").replace("valid tuple", "list")
    empty = ", found nothing" if error["input"] is None else ""
    return Problem(*document.place(key), f"{_what(key)}: {message[0].lower()}{message[1:]}{found}{empty}")


def shown(path: Path, root: Path) -> str:
    """Return a path as messages name it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _what(key: Key) -> str:
    """Return a key path in words, such as `criteria[2].measures[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".") or "the file"


def known_keys(model: type[Model], key: Key) -> list[str]:
    """Return the keys that a mapping at a place of a model may have."""
    models = [model]
    for name in key:
        # a name that is no field is a key of a mapping, or one that pydantic gives to a member of a union
        models = [found for each in models for found in _models_in(_fields(each).get(str(name)))] or models
    return [name for each in models for name in _fields(each)]


def _fields(model: type[Model]) -> dict[str, object]:
    """Return the annotation of each key that a user may write."""
    return {
        field.alias or name: field.annotation
        for name, field in model.model_fields.items()
        if not isinstance(field.json_schema_extra, dict) or not field.json_schema_extra.get("readOnly")
    }


def _models_in(annotation: object) -> Iterator[type[Model]]:
    """Yield the models that a value of a type may be, through lists, mappings and unions."""
    if isinstance(annotation, type) and not get_origin(annotation) and issubclass(annotation, Model):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
