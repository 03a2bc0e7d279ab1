"""The published JSON schemas."""

import json

from gates.bundles import Bundle
from gates.measuring.samples import Samples
from gates.model import Model
from gates.report import Report
from gates.task.task import Task

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, tuple[type[Model], str]] = {
    "result": (Report, "serialization"),
    "task": (Task, "validation"),
    "samples": (Samples, "validation"),
    "bundle": (Bundle, "validation"),
}


def schema_of(name: str) -> str:
    """Return the JSON schema of a kind of file, as text."""
    model, mode = MODELS[name]
    schema = model.model_json_schema(by_alias=True, mode="serialization" if mode == "serialization" else "validation")
    if name == "task":
        for part in (schema, *schema.get("$defs", {}).values()):
            properties = part.get("properties", {})
            part["properties"] = {key: value for key, value in properties.items() if not value.get("readOnly")}
    return json.dumps({"$schema": DIALECT, **schema}, indent=2, sort_keys=True)
