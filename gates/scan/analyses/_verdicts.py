"""Verdicts of a program: the conditions whose truth says that something passed, or that it failed."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import words
from gates.scan.analyses._code import constant, function_of, nodes, tail_text
from gates.scan.module import Module

PASS = re.compile(
    r"(?i)(^|[_ ])(pass(ed|es)?|ok(ay)?|success(ful)?|met|meets(_\w+)?|achieved|good|reached|satisfied|satisfies|"
    r"target_met|accept(s|ed|able)?|approved?|promoted?|ships?|shippable|releasable|allowed|healthy|admissible|"
    r"tolerable|within\w*|faster|quicker|lighter|worth|worthwhile|converged|agrees?|agreed|agreement|match(ed|es)?|same|equals?|close|consistent|equivalent|parity|"
    r"comparable|indistinguishable)([_ ]|$)"
)
FAIL = re.compile(
    r"(?i)(^|[_ ])(fail(ed|s|ure)?|too_slow|slow|regress(ed|es|ion)?|violate[sd]?|bad|degraded|missed|reject(ed|s)?|"
    r"exceed(ed|s)?|diverged|unacceptable|slower|heavier|differs?|different|mismatch(ed|es)?|drifted|worse)([_ ]|$)"
)
MAIN = re.compile(r"(?i)^_*(main|cli|run|gate|(exit|return|status)_?code)$")
NOT = re.compile(r"(?i)(^|_)(not|no|un|isnt|never)(_|$)")
AMOUNT = re.compile(r"(?i)(^|[_ ])(budget|limit|gate|check|guard|test|free|threshold|tolerance|bar)([_ ]|$)")
Verdict = tuple[str, ast.expr, bool]


def verdicts(module: Module) -> Iterator[Verdict]:
    """Yield what says it, its condition, and whether the condition's truth means passed."""
    for name, value in _given(module):
        if (good := _good(name)) is not None:
            yield name, value, good
    for node in nodes(module, ast.Assert, ast.IfExp, ast.If):
        if isinstance(node, ast.Assert):
            yield "asserted", node.test, True
        elif isinstance(node, ast.IfExp):
            yield from _chosen("the verdict", node.test, node.body, node.orelse)
            yield from _coded(module, node)
        elif isinstance(node, ast.If):
            yield from _set(node) if node.orelse else _returned(module, node)


def _given(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield expressions with the name that they are given: a variable's, a key's, a keyword's, a function's."""
    for node in nodes(module, ast.Assign, ast.AnnAssign, ast.Dict, ast.keyword, ast.Return):
        if isinstance(node, ast.Assign):
            yield tail_text(node.targets[0]).strip().rpartition(" ")[2], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield tail_text(node.target).strip().rpartition(" ")[2], node.value
        elif isinstance(node, ast.Dict):
            keyed = zip(node.keys, node.values, strict=True)
            yield from ((str(key.value), value) for key, value in keyed if isinstance(key, ast.Constant))
        elif isinstance(node, ast.keyword):
            yield node.arg or "", node.value
        elif isinstance(node, ast.Return) and node.value is not None:
            function = function_of(node, module)
            name = function.name if function is not None else ""
            each = node.value.values if isinstance(node.value, ast.Dict) and _good(name) is not None else [node.value]
            yield from ((name, value) for value in each)


def _good(name: str) -> bool | None:
    """Return whether a name means passed; `None` for one that means neither, or may mean both."""
    passed, failed = PASS.search(words(name).replace(" ", "_")), FAIL.search(words(name).replace(" ", "_"))
    if bool(passed) is bool(failed) or NOT.search(name) or (failed and AMOUNT.search(name)):
        return None
    return passed is not None


def _word(node: ast.expr | None) -> bool | None:
    """Return whether a constant says passed, or failed."""
    value = constant(node)
    return _good(value) if isinstance(value, str) and len(value) < 40 else None


def _chosen(name: str, test: ast.expr, one: ast.expr | None, other: ast.expr | None) -> Iterator[Verdict]:
    first, second = _word(one), _word(other)
    if first is not None and second is not first:
        yield name, test, first


def _coded(module: Module, chosen: ast.IfExp) -> Iterator[Verdict]:
    """Yield the condition of `sys.exit(0 if test else 1)`, or of `return 0 if test else 1` in what is the program."""
    one, other = _code(chosen.body), _code(chosen.orelse)
    around = next(iter(module.ancestors(chosen)), None)
    exits = isinstance(around, ast.Call) and tail_text(around.func).split()[-1:] in (["exit"], ["SystemExit"])
    if one is not None and other is not None and one is not other and (exits or _is_main(around, module)):
        yield "the exit code", chosen.test, one


def _code(node: ast.expr | None) -> bool | None:
    """Return whether an exit code says that all went well."""
    value = constant(node)
    return value == 0 if isinstance(value, int) and not isinstance(value, bool) else None


def _is_main(node: ast.AST | None, module: Module) -> bool:
    function = function_of(node, module) if isinstance(node, ast.Return) else None
    return function is not None and MAIN.search(function.name) is not None


def _returned(module: Module, branch: ast.If) -> Iterator[Verdict]:
    """Yield the condition of `if test: return False` in a function that is called a verdict, or of `return "pass"`."""
    last = branch.body[-1]
    if not isinstance(last, ast.Return) or len(branch.body) > 2:
        return
    function = function_of(branch, module)
    good, value = _good(function.name) if function is not None else None, constant(last.value)
    if function is not None and good is not None and isinstance(value, bool):
        yield function.name, branch.test, good is value
    elif (code := _code(last.value)) is not None and _is_main(last, module):
        yield "the exit code", branch.test, code
    elif (word := _word(last.value)) is not None:
        yield "the verdict", branch.test, word


def _set(branch: ast.If) -> Iterator[Verdict]:
    """Yield the condition of `if test: status = "passed"; else: status = "failed"`."""
    for one in branch.body:
        for other in branch.orelse:
            if isinstance(one, ast.Assign) and isinstance(other, ast.Assign):
                yield from _chosen(tail_text(one.targets[0]).strip(), branch.test, one.value, other.value)
            elif isinstance(one, ast.Return) and isinstance(other, ast.Return):
                yield from _chosen("the verdict", branch.test, one.value, other.value)
