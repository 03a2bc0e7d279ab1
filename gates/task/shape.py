"""What the model of a task knows at a place of its file: the keys there, and whether values there are JSON's."""

from collections.abc import Iterator
from functools import cache
from typing import get_args, get_origin

from pydantic import JsonValue

from gates.model import Model
from gates.task.task import Task
from gates.task.yaml_source import Key


def known_keys(key: Key) -> list[str]:
    """Return the keys that a mapping at this place may have."""
    models = [form for form in _forms_at(_by_names(key)) if _is_model(form)]
    return [name for model in models for name in _fields(model)]


def is_typed(key: Key) -> bool:
    """Return whether no model knows the type of a value at this place: what it looks like in JSON counts."""
    return JsonValue in _forms_at(_by_names(key))


def _by_names(key: Key) -> tuple[str, ...]:
    return tuple(part for part in key if isinstance(part, str))


@cache
def _forms_at(names: tuple[str, ...]) -> tuple[object, ...]:
    """Return what may stand at a place: models, plain types, or JSON, in which everything is JSON again."""
    if not names:
        return (Task,)
    found: list[object] = []
    around = _forms_at(names[:-1])
    for form in around:
        if form is JsonValue:
            found.append(form)
        elif _is_model(form) and names[-1] in _fields(form):
            found += _unfolded(_fields(form)[names[-1]])
    # a name that is no field is a key of a mapping, or one that pydantic gives to a member of a union
    return tuple(found) or tuple(form for form in around if _is_model(form) and form is not Task)


def _is_model(form: object) -> bool:
    return isinstance(form, type) and issubclass(form, Model)


def _fields(model: object) -> dict[str, object]:
    """Return the annotation of each key that a user may write."""
    assert isinstance(model, type)
    assert issubclass(model, Model)
    return {
        field.alias or name: field.annotation
        for name, field in model.model_fields.items()
        if not isinstance(field.json_schema_extra, dict) or not field.json_schema_extra.get("readOnly")
    }


def _unfolded(annotation: object) -> Iterator[object]:
    """Yield what a value of a type may be, through lists, mappings and unions."""
    if annotation is JsonValue or get_origin(annotation) is None:
        yield annotation
        return
    for inner in get_args(annotation):
        yield from _unfolded(inner)
