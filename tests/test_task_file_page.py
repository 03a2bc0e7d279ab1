"""The page of all keys of a task file beside the models that read one."""

import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from gates.task.task import task_model

PAGE = (Path(__file__).parents[1] / "docs/task-file.md").read_text(encoding="utf-8")


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from models_in(part)


def parts_of(model: type[BaseModel], found: dict[str, type[BaseModel]] | None = None) -> dict[str, type[BaseModel]]:
    found = {} if found is None else found
    if model.__name__ not in found:
        found[model.__name__] = model
        for field in model.model_fields.values():
            for part in models_in(field.annotation):
                parts_of(part, found)
    return found


PARTS = parts_of(task_model())


def keys_on_the_page(part: str) -> dict[str, str]:
    """The keys in the table of a part, each with what the page calls its default."""
    section = re.search(rf"^#+ {part}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None, f"the page has no part {part}"
    rows = re.findall(r"^\| (`.*?) \| (.*?) ?\| .* \|$", section[1], re.MULTILINE)
    return {key: default.strip("`") for keys, default in rows for key in re.findall(r"`(\w+)`", keys)}


@pytest.mark.parametrize("part", PARTS)
def test_every_key_stands_on_the_page_and_no_other(part: str) -> None:
    fields = PARTS[part].model_fields
    wanted = {field.alias or name for name, field in fields.items() if not field.exclude and name != "line"}
    assert set(keys_on_the_page(part)) == wanted


@pytest.mark.parametrize("part", PARTS)
def test_defaults_are_those_of_the_page(part: str) -> None:
    for name, field in PARTS[part].model_fields.items():
        shown = keys_on_the_page(part).get(field.alias or name)
        if isinstance(field.default, int | float) and shown and field.default is not False:
            assert float(shown) == float(field.default), name
        if field.is_required():
            assert shown in {"", None}, f"{name} must be given"
