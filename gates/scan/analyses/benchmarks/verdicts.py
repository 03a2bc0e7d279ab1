"""Verdicts of a program: the conditions whose truth says that something passed, or that it failed."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import words
from gates.scan.analyses.reading.code import callee, constant, function_of, nodes, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.signatures import parameters

PASS = re.compile(
    r"(?i)(^|[_ ])(pass(ed|es)?|ok(ay)?|success(ful)?|met|meets(_\w+)?|achieved|good|reached|satisfied|satisfies|"
    r"target_met|accept(s|ed|able)?|approved?|promoted?|ships?|shippable|releasable|allowed|healthy|admissible|"
    r"tolerable|enough|within\w*|faster|quicker|lighter|worth|worthwhile|converged|agrees?|agreed|agreement|match(ed|es)?|same|equals?|close|consistent|equivalent|parity|"
    r"comparable|indistinguishable)([_ ]|$)"
)
FAIL = re.compile(
    r"(?i)(^|[_ ])(fail(ed|s|ure)?|too_slow|slow|regress(ed|es|ion)?|violate[sd]?|bad|degraded|missed|reject(ed|s)?|"
    r"exceed(ed|s)?|diverged|unacceptable|slower|heavier|differs?|different|mismatch(ed|es)?|drifted|worse)([_ ]|$)"
)
MAIN = re.compile(r"(?i)^_*(main|cli|run|gate|(exit|return|status)_?code)$")
NOT = re.compile(r"(?i)(^|_)(not|no|un|isnt|never)(_|$)")
AMOUNT = re.compile(r"(?i)(^|[_ ])(budget|limit|gate|check|guard|test|free|threshold|tolerance|bar)([_ ]|$)")
OWN = re.compile(
    r"(?i)(^|_)(faster|better|worse|slower|higher|lower|exceed\w*|too|over|under|above|below|low|high|has)(_|$)"
)
HOPS = 3
Verdict = tuple[str, ast.expr, bool]
Asked = tuple[Module, ast.expr, bool]


def verdicts(module: Module) -> Iterator[Verdict]:
    """Yield what says it, its condition, and whether the condition's truth means passed."""
    for name, value in given(module):
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


def given(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield expressions with the name that they are given: a variable's, a key's, a keyword's, a function's."""
    for node in nodes(module, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Dict, ast.keyword, ast.Return):
        if isinstance(node, ast.Assign):
            yield tail_text(node.targets[0]).strip().rpartition(" ")[2], node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
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


def answers(project: Project) -> Iterator[tuple[Module, str, ast.expr, bool]]:
    """Yield what the functions return whose answers are taken for verdicts, where all of those mean the same."""
    found: dict[ast.expr, tuple[Module, str, set[bool]]] = {}
    for module in project.modules.values():
        asked = (
            (name, each)
            for name, value, good in (*verdicts(module), *_failing(module))
            for each in _asked(project, module, value, good, HOPS)
        )
        for name, (there, answer, wanted) in (*asked, *_taken_apart(project, module), *_handed(project, module)):
            found.setdefault(answer, (there, name, set()))[2].add(wanted)
    yield from ((there, name, each, told.pop()) for each, (there, name, told) in found.items() if len(told) == 1)


def _handed(project: Project, module: Module) -> Iterator[tuple[str, Asked]]:
    """Yield what calls pass in its place for a parameter whose name is a verdict: `check("speed", ratio >= bar)`."""
    for call in nodes(module, ast.Call):
        if not isinstance(call, ast.Call) or not any(isinstance(arg, ast.Compare | ast.BoolOp) for arg in call.args):
            continue
        function = callee(project, module, call)
        if function is None:
            continue
        is_bound = project.scope_of(function, module).self_name is not None
        for name in parameters(function):
            good = _good(name)
            value = argument(call, function, name, bound=is_bound) if good is not None else None
            if value is not None and value in call.args and good is not None:
                yield name, (module, value, good)


def _taken_apart(project: Project, module: Module) -> Iterator[tuple[str, Asked]]:
    """Yield the parts of what a function returns that a call keeps under a name for passed: `gap, ok = judge()`."""
    for node in nodes(module, ast.Assign):
        target, call = (node.targets[0], node.value) if isinstance(node, ast.Assign) else (None, None)
        if not isinstance(target, ast.Tuple) or not isinstance(call, ast.Call):
            continue
        function = callee(project, module, call)
        if function is None or _good(function.name) is not None:
            continue
        there = project.scope_of(function, module).module
        for name, part in _returned_for(function, target):
            good = _good(name) if _good(tail_of(part)) is None else None
            if good is not None:
                whole = (there, part, good)
                yield from ((name, each) for each in (whole, *_asked(project, there, part, good, HOPS - 1)))


def _returned_for(function: Function, target: ast.Tuple) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that what a function returns is taken apart into, each with its part."""
    for node in inner(function, ast.Return):
        given = node.value.elts if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) else []
        if len(given) == len(target.elts) and not any(isinstance(e, ast.Starred) for e in (*given, *target.elts)):
            yield from ((tail_of(name), part) for name, part in zip(target.elts, given, strict=True))


def _failing(module: Module) -> Iterator[Verdict]:
    """Yield the conditions under which code raises."""
    for node in nodes(module, ast.If):
        if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
            yield "the check", node.test, False


def _asked(
    project: Project, module: Module, value: ast.expr, wanted: bool, hops: int, *, whole: bool = False
) -> Iterator[Asked]:
    """Yield the comparisons that calls in a verdict return, and whether their truth means passed.

    Of what is taken as a `whole` they are those that it lists.
    """
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        yield from _asked(project, module, value.operand, not wanted, hops)
    elif parts := _parts(value):
        for part in parts:
            yield from _asked(project, module, part, wanted, hops)
    elif taken := _taken_from(value, module):
        yield from _asked(project, module, taken, wanted, hops, whole=True)
    elif isinstance(value, ast.Dict | ast.List | ast.Tuple | ast.Set):
        yield from ((module, each, wanted) for each in _listed(value) if whole)
    elif isinstance(value, ast.Name) and hops:
        body = function_of(value, module) or module.tree
        before = set_before(body, value.id, value.lineno)
        for made, _ in before if len(before) == 1 else ():
            yield from _asked(project, module, made, wanted, hops - 1, whole=whole)
            yield from ((module, each, wanted) for each in [made] if isinstance(made, ast.Compare))
    elif isinstance(value, ast.Call) and hops:
        yield from _answered(project, module, value, wanted, hops - 1, whole=whole)


def _parts(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BoolOp):
        return value.values
    return value.generators[0].ifs or [value.elt] if isinstance(value, ast.ListComp | ast.GeneratorExp) else []


def _taken_from(value: ast.expr, module: Module) -> ast.expr | None:
    """Return of what all is taken, together or one after the other: of `all(checks.values())`, `checks`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.value if value.func.attr in {"values", "items"} and not value.args else None
    if isinstance(value, ast.Call):
        return value.args[0] if tail_of(value.func) in {"all", "any", "list"} and value.args else None
    for around in module.ancestors(value) if isinstance(value, ast.Name) else ():
        for loop in [around] if isinstance(around, ast.For) else getattr(around, "generators", ()):
            last = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
            if tail_of(last) == tail_of(value):
                return loop.iter
    return None


def _listed(listed: ast.Dict | ast.List | ast.Tuple | ast.Set) -> Iterator[ast.Compare]:
    """Yield the comparisons of a list of checks, but for those whose labels say themselves what they mean."""
    values = listed.values if isinstance(listed, ast.Dict) else listed.elts
    keys = listed.keys if isinstance(listed, ast.Dict) else [_label(each) for each in values]
    for key, value in zip(keys, values, strict=True):
        label = str(constant(key)) if key is not None else ""
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        found = [part for part in parts if isinstance(part, ast.Compare)]
        if len(found) == 1 and _good(label) is None and not OWN.search(words(label).replace(" ", "_")):
            yield found[0]


def _label(row: ast.expr) -> ast.expr | None:
    parts = row.elts if isinstance(row, ast.Tuple | ast.List) else []
    return next((part for part in parts if isinstance(constant(part), str)), None)


def _answered(
    project: Project, module: Module, call: ast.Call, wanted: bool, hops: int, *, whole: bool = False
) -> Iterator[Asked]:
    """Yield the comparisons that the function of a call returns, where its own name does not judge them."""
    function = callee(project, module, call)
    if function is None or _good(function.name) is not None:
        return
    there = project.scope_of(function, module).module
    for node in inner(function, ast.Return):
        answer = node.value if isinstance(node, ast.Return) else None
        if isinstance(answer, ast.Call) and tail_of(answer.func) == "bool" and answer.args:
            answer = answer.args[0]
        if isinstance(answer, ast.Compare | ast.BoolOp):
            yield there, answer, wanted
        elif answer is not None:
            yield from _asked(project, there, answer, wanted, hops, whole=whole)
