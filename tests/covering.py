"""Builders of what was seen of coverage and start-up, with honest defaults."""

from typing import Any

from gates.checks.startup import Built, Imported, Imports, Startup
from gates.evidence.lines.executed_lines import ExecutedLines, FunctionLines
from gates.model import CommandRecord, Location, Outcome

TEST = "tests/test_core.py::test_double"


def a_function(name: str = "double", *, line: int = 1, **changes: Any) -> FunctionLines:
    """A public function of two lines in pkg/core.py, of which the second is its body."""
    facts: dict[str, Any] = {
        "name": name,
        "location": Location(path="pkg/core.py", line=line, last_line=line + 1),
        "body": Location(path="pkg/core.py", line=line + 1, last_line=line + 1),
        "counts": True,
        "wrapped": False,
    }
    return FunctionLines.model_validate({**facts, **changes})


def executed(*functions: FunctionLines, ran: tuple[int, ...] = (2,), **changes: Any) -> ExecutedLines:
    """One function and the lines of pkg/core.py that one test ran, where nothing else is given."""
    facts: dict[str, Any] = {
        "how": "coverage",
        "functions": functions or (a_function(),),
        "lines": {"pkg/core.py": dict.fromkeys(ran, 0)},
        "contexts": (f"test:{TEST}",),
        "sets": ("1",),
    }
    return ExecutedLines.model_validate({**facts, **changes})


def a_module(name: str = "pkg.core", ending: Outcome = Outcome.PASSED, **changes: Any) -> Imported:
    """A module that was imported by itself."""
    path = f"{name.replace('.', '/')}.py"
    facts = {"name": name, "path": path, "ending": ending, "location": Location(path=path)}
    return Imported.model_validate({**facts, **changes})


def started(*modules: Imported, problem: str = "", **changes: Any) -> Startup:
    """A package that was built, and modules that import by themselves."""
    command = CommandRecord(purpose="imports", argv=("python",), ended="exit code 0", duration_s=1.0)
    facts: dict[str, Any] = {
        "how": "a wheel, and each module alone",
        "build": Built(ending=Outcome.PASSED, backend="flit_core.buildapi", wheel="pkg-1-py3-none-any.whl"),
        "imports": Imports(command=command, modules=modules or (a_module(),), problem=problem),
    }
    return Startup.model_validate({"aside": (), **facts, **changes})
