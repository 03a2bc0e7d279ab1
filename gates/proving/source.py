"""A file of the implementation as faults are made from it: its text, its tree, and replacements of parts of it."""

import ast
import difflib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gates.code.stub import last_name
from gates.code.syntax import live_nodes
from gates.proving._worker.keeping import encoding_of

LOGS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}
LOGGERS = {"logging", "logger", "log", "_log", "_logger", "LOG", "LOGGER", "warnings"}
TELLING = {"isinstance", "super", "cast", "TypeVar", "NewType", "ParamSpec", "overload"}
CONTEXT = 2


@dataclass(frozen=True)
class Text:
    """The text of a file, named relative to the project."""

    path: str
    text: str

    @classmethod
    def read(cls, root: Path, path: str) -> "Text":
        """Read a file in its encoding; line ends stay. What lies outside of the project is not ours to change."""
        if not (root / path).resolve().is_relative_to(root.resolve()):
            raise OSError(f"{path} is a link that leads out of the project")
        content = (root / path).read_bytes()
        return cls(path, content.decode(encoding_of(path, content)))

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree; raises `SyntaxError` where there is none."""
        return parsed(self.text)

    @cached_property
    def form(self) -> str:
        """Return the syntax tree as text: comments and spaces make no mutant."""
        return ast.dump(self.tree)

    @cached_property
    def worth(self) -> tuple[ast.AST, ...]:
        """Return the live nodes, leaving out annotations, and what is only told to people or to type checkers."""
        found, aside = [], set[ast.AST]()
        for node in live_nodes(self.tree):  # what holds others comes before them
            if node in aside or _only_tells(node):
                aside.update(ast.iter_child_nodes(node))
                continue
            found.append(node)
            words = isinstance(node, ast.Raise | ast.JoinedStr)
            told = map(vars(node).get, ("annotation", "returns"))
            aside.update(ast.iter_child_nodes(node) if words else filter(None, told))
        return tuple(found)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.text.encode("utf-8").splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = self._starts[node.lineno - 1] + node.col_offset
        return first, self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        first, last = self.span(node)
        return self.text.encode("utf-8")[first:last].decode("utf-8")

    def with_parts(self, *parts: tuple[ast.expr | ast.stmt, str]) -> str:
        """Return the text with nodes replaced, none of which lies within another."""
        raw = self.text.encode("utf-8")
        for node, text in sorted(parts, key=lambda part: self.span(part[0]), reverse=True):
            first, last = self.span(node)
            raw = raw[:first] + text.encode("utf-8") + raw[last:]
        return raw.decode("utf-8")

    def with_heads(self, heads: Mapping[ast.FunctionDef | ast.AsyncFunctionDef, str]) -> str:
        """Return the text with a statement of one line before all else that functions do; docstrings stay first."""
        raw = self.text.encode("utf-8")
        for function, text in sorted(heads.items(), key=lambda pair: pair[0].lineno, reverse=True):
            statement = function.body[is_docstring(function.body[0]) and len(function.body) > 1]
            parts = (node for node in ast.walk(statement) if isinstance(node, ast.expr | ast.stmt))
            line = self._starts[min(node.lineno for node in parts) - 1]  # a decorator stands above its function
            begin = line + statement.col_offset
            indent = raw[line:begin]
            if indent.strip():  # it stands on the line of its `def`
                start = self._starts[function.lineno - 1]
                indent = raw[start : start + function.col_offset] + b" "
                raw = raw[:begin] + b"\n" + indent + raw[begin:]
                begin += 1 + len(indent)
            raw = raw[:begin] + text.encode("utf-8") + b"\n" + indent + raw[begin:]
        return raw.decode("utf-8")

    def diff(self, text: str) -> str:
        """Return the difference to another text, with a little of what is around it."""
        lines = difflib.unified_diff(
            self.text.splitlines(), text.splitlines(), self.path, self.path, lineterm="", n=CONTEXT
        )
        return "\n".join(lines)


def parsed(text: str) -> ast.Module:
    """Parse a text; what the compiler only warns of is no concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def compiles(text: str) -> bool:
    """Return whether a text is a program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "fault", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def is_log(node: ast.AST) -> bool:
    """Return whether a call only tells somebody something."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "print"
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in LOGS:
        return False
    owner = node.func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return name in LOGGERS


def is_docstring(node: ast.AST) -> bool:
    """Return whether a statement is only a text."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_none(node: ast.expr) -> bool:
    """Return whether an expression is `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def _only_tells(node: ast.AST) -> bool:
    """Return whether a change of a node changes nothing: docstrings, messages, declarations, `__all__`."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = any(isinstance(target, ast.Name) and target.id in {"__all__", "__slots__"} for target in targets)
        return named or node.value is None
    if isinstance(node, ast.Call):
        return is_log(node) or last_name(node.func) in TELLING
    return is_docstring(node) or (isinstance(node, ast.Expr) and is_log(node.value))
