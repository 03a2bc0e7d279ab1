"""Verdicts of a program: the conditions whose truth says that something passed, or that it failed."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import words
from gates.scan.analyses._code import callee, constant, function_of, nodes, tail_text
from gates.scan.analyses._flow import set_before
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner, text_of
from gates.scan.project import Project

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
ENDS = re.compile(
    r"(?i)(^|_)(should_?|must_?|early_?|is_?)*(stop(ped|ping|s)?|finish(ed)?|done|exhausted|give_?up)(_|$)|^over$"
)
GOES_ON = re.compile(r"(?i)(^|_)(keep_?(going|on|training)|continues?|go_?on|proceed|running|has_patience)(_|$)")
PATIENCE = re.compile(r"(?i)(^|[^a-z])(patience|patient|max_(bad|stale|wait|no_improve\w*)(_\w+)?)([^a-z]|$)")
HOPS = 3
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


def answers(project: Project) -> Iterator[tuple[Module, str, ast.expr, bool]]:
    """Yield what the functions return whose answers are taken for verdicts, where all of those mean the same."""
    found: dict[ast.expr, tuple[Module, str, set[bool]]] = {}
    for module in project.modules.values():
        for name, value, good in (*verdicts(module), *_failing(module)):
            for there, answer, wanted in _asked(project, module, value, good, HOPS):
                found.setdefault(answer, (there, name, set()))[2].add(wanted)
    yield from ((there, name, each, told.pop()) for each, (there, name, told) in found.items() if len(told) == 1)


def _failing(module: Module) -> Iterator[Verdict]:
    """Yield the conditions under which code raises."""
    for node in nodes(module, ast.If):
        if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
            yield "the check", node.test, False


def _asked(
    project: Project, module: Module, value: ast.expr, wanted: bool, hops: int
) -> Iterator[tuple[Module, ast.expr, bool]]:
    """Yield the comparisons that calls in a verdict return, and whether their truth means passed."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        yield from _asked(project, module, value.operand, not wanted, hops)
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _asked(project, module, part, wanted, hops)
    elif isinstance(value, ast.Name) and hops:
        body = function_of(value, module) or module.tree
        before = set_before(body, value.id, value.lineno)
        for made, _ in before if len(before) == 1 else ():
            yield from _asked(project, module, made, wanted, hops - 1)
            yield from ((module, each, wanted) for each in [made] if isinstance(made, ast.Compare))
    elif isinstance(value, ast.Call) and hops:
        yield from _answered(project, module, value, wanted, hops - 1)


def _answered(
    project: Project, module: Module, call: ast.Call, wanted: bool, hops: int
) -> Iterator[tuple[Module, ast.expr, bool]]:
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
            yield from _asked(project, there, answer, wanted, hops)


def out_of_patience(module: Module) -> Iterator[tuple[ast.Compare, str]]:
    """Yield each comparison that ends a search while there is patience left, or goes on when there is none."""
    for test, ends in _endings(module):
        for compare, told in _compared(test, ends):
            above = _is_above(compare, module)
            if above is not None and above is not told:
                yield compare, f"{text_of(compare)} {'ends' if told else 'goes on with'} the search the wrong way round"


def _endings(module: Module) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the conditions whose truth ends a search, or lets it go on."""
    for name, value in _given(module):
        if (ends := _ends(name)) is not None:
            yield value, ends
    for node in nodes(module, ast.If):
        assert isinstance(node, ast.If)
        function = function_of(node, module)
        for last in (*node.body[:1], *node.body[-1:]):
            if isinstance(last, ast.Break):
                yield node.test, True
            elif isinstance(last, ast.Return) and isinstance(said := constant(last.value), bool) and function:
                ends = _ends(function.name)
                yield from [(node.test, ends is said)] if ends is not None else []
            elif isinstance(last, ast.Assign) and isinstance(said := constant(last.value), bool):
                ends = _ends(tail_text(last.targets[0]).strip().rpartition(" ")[2])
                yield from [(node.test, ends is said)] if ends is not None else []


def _ends(name: str) -> bool | None:
    ends, goes_on = ENDS.search(name) is not None, GOES_ON.search(name) is not None
    return ends if ends is not goes_on and not NOT.search(name) else None


def _compared(test: ast.expr, ends: bool) -> Iterator[tuple[ast.Compare, bool]]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _compared(test.operand, not ends)
    elif isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _compared(part, ends)
    elif isinstance(test, ast.Call) and tail_of(test.func) == "bool" and test.args:
        yield from _compared(test.args[0], ends)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        yield test, ends


def _is_above(compare: ast.Compare, module: Module) -> bool | None:
    """Return whether a comparison is true of a count that is above its patience; `None` for other ones."""
    left, right = compare.left, compare.comparators[0]
    if not isinstance(compare.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return None
    above = isinstance(compare.ops[0], ast.Gt | ast.GtE)
    for count, bar, is_above in ((left, right, above), (right, left, not above)):
        if PATIENCE.search(tail_text(bar)) and not PATIENCE.search(tail_text(count)) and _grows(count, module):
            return is_above
    return None


def _grows(count: ast.expr, module: Module) -> bool:
    """Return whether something counts up: by what is added to it, or as what has passed since."""
    if isinstance(count, ast.BinOp):
        return isinstance(count.op, ast.Sub) and bool(tail_text(count.left).strip())
    added = [
        n for n in nodes(module, ast.AugAssign) if isinstance(n, ast.AugAssign) and text_of(n.target) == text_of(count)
    ]
    return bool(added) and all(isinstance(n.op, ast.Add) for n in added)
