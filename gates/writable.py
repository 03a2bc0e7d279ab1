"""Models that can be written: what is no text in them (names of files that are not UTF-8) is shown as escapes."""

from typing import TypeVar

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError

from gates.model import Model
from gates.terminal import printable

M = TypeVar("M", bound=Model)


def writable(piece: M) -> M:
    """Return a model as it is, or, where JSON cannot hold what it says, with escapes in place of that."""
    try:
        piece.model_dump_json()
    except PydanticSerializationError:
        return type(piece).model_validate(_escaped(piece.model_dump(mode="json", by_alias=True)))
    return piece


def _escaped(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {printable(name): _escaped(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_escaped(inner) for inner in value]
    return printable(value) if isinstance(value, str) else value
