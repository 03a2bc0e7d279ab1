"""The page of all public names is what their docstrings say; `pytest --update-golden` writes it anew."""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from building import ROOT

import amp_core
from amp_core import checkpoint, parallel

PAGE = ROOT / "docs/api.md"


def arguments(value: Any) -> str:
    """The arguments by name, with their defaults; of an exception, none."""
    if inspect.isclass(value) and issubclass(value, Exception):
        return ""
    named = [each for each in inspect.signature(value).parameters.values() if each.name != "self"]
    text = str(inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in named]))
    return re.sub(r"<(?:built-in )?function (\w+)[^>]*>", r"\1", text)


def entry(name: str, value: Any) -> Iterator[str]:
    """A name with its arguments and its docstring, and a line for each method that has one."""
    yield f"### {name}\n\n```text\n{name}{arguments(value)}\n\n{inspect.getdoc(value)}\n```\n\n"
    for method, its in vars(value).items() if inspect.isclass(value) else ():
        its = getattr(its, "fget", getattr(its, "__func__", its))
        if not method.startswith("_") and inspect.isfunction(its):
            yield f"- `{method}`: {(inspect.getdoc(its) or '').partition(chr(10))[0]}\n"


def functions_of(module: ModuleType) -> dict[str, Any]:
    own = inspect.getmembers(module, lambda each: getattr(each, "__module__", "") == module.__name__)
    return {name: value for name, value in own if inspect.isfunction(value) and not name.startswith("_")}


def test_page_of_all_public_names_is_up_to_date(request: pytest.FixtureRequest) -> None:
    assert len(amp_core.__all__) <= 40
    parts = {"amp_core": {name: getattr(amp_core, name) for name in amp_core.__all__}}
    parts |= {module.__name__: functions_of(module) for module in (checkpoint, parallel)}
    text = (
        "# API\n\nAll public names of the training core. [The training core](training.md) shows how they go together.\n"
    )
    for module, names in parts.items():
        text += f"\n## {module}\n\n" + "\n".join("".join(entry(*each)).rstrip() + "\n" for each in names.items())
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
