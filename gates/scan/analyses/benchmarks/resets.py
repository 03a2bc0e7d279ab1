"""What sets the peak of memory back, or starts afresh."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.reading.code import nodes
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project

RESETS = (
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_accumulated_memory_stats",
)
AFRESH = re.compile(
    r"(?i)reset_.*(mem|peak)|subprocess|^spawn|^Process$|^Popen$|^fork$|ProcessPool|(track|watch|record|monitor).*mem|"
    r"mem.*(track|watch|record|monitor)"
)
MAX_SEEN = 200


def is_set_back(project: Project, *turns: ast.AST) -> bool:
    """Return whether a turn may set the peak back or start afresh: by any name in it, and in what it may run."""
    seen, todo = set(turns), list(turns)
    known = project.once(_definitions)[0]
    while todo and len(seen) < MAX_SEEN:
        for node in walk(todo.pop()):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            name = tail_of(node)
            if name in RESETS or AFRESH.search(name):
                return True
            more = [d for d in known.get(name, ()) if d not in seen]
            seen.update(more)
            todo += more
    return len(seen) >= MAX_SEEN


def _definitions(project: Project) -> Iterator[dict[str, list[ast.AST]]]:
    """Yield the functions and classes of a program by their names."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    for module in project.modules.values():
        for node in nodes(module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
            found[getattr(node, "name", "")].append(node)
    yield found
