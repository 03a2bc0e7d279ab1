"""What tells that code reckons a score, rather than to gather features or statistics."""

import ast
import re

from gates.scan.analyses.benchmarks.benching import words
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import inner

SCORES = re.compile(
    r"(?i)(^| )(acc|accuracy|loss|losses|correct|right|hits?|metrics?|error|score|scores|f1|auc|iou|dice|top1)( |$)|"
    r"entropy|loss$"
)


def is_score(name: str) -> bool:
    """Return whether a value is called a score."""
    return SCORES.search(words(name)) is not None


def reckons_score(function: ast.AST) -> bool:
    """Return whether a function reckons a score: by what it names, or as it compares what was predicted."""
    tails = (tail_of(n.func) if isinstance(n, ast.Call) else tail_of(n) for n in inner(function, ast.Call, ast.Name))  # type: ignore[arg-type]
    return any(is_score(tail) for tail in tails) or any(
        isinstance(op, ast.Eq) and any(isinstance(side, ast.Call | ast.Name) for side in n.comparators)
        for n in inner(function, ast.Compare)
        if isinstance(n, ast.Compare)
        for op in n.ops
    )
