"""Verdicts of a benchmark that pass what is bad."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import broken, constant, function_of, nodes, tail_text
from gates.scan.module import Module
from gates.scan.nodes import text_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("speed", "faster", "saved", "saving", "reduction", "reduced", "overhead", "drop", "degradation", "diff",
         "best", "floor", "limit", "budget", "minimum", "better", "improved")  # fmt: skip
PASS = re.compile(
    r"(?i)(^|_)(pass(ed|es)?|ok(ay)?|success(ful)?|met|meets(_\w+)?|achieved|good|reached|satisfied|target_met)(_|$)"
)
FAIL = re.compile(r"(?i)(^|_)(fail(ed|s|ure)?|too_slow|slow|regress(ed|ion)?|violated|bad|degraded|missed)(_|$)")
MORE = re.compile(r"(?i)speed_?up|faster|acceleration|saved|saving|reduction|reduced|decrease|throughput")
BETTER = re.compile(r"(?i)(^|_| )(is_best|improved|better|is_better|new_best)(_|$)")
SMALLER = re.compile(r"(?i)loss|error|(^|[_ ])(err|ppl|perplexity|wer|cer|mae|mse|rmse|fid|nll|latency)([_ ]|$)")
BIGGER = re.compile(
    r"(?i)(^|[_ ])(acc|accuracy|top1|f1|auc|auroc|iou|miou|map|bleu|score|reward|psnr|ssim|dice|recall)([_ ]|$)"
)
INFINITY = re.compile(r"""(?i)-?((math|np|numpy|torch)\.inf|float\(['"][-+]?inf(inity)?['"]\))""")
FLOOR = re.compile(r"(?i)(^|[_ ])(floor|minimum|at_least|lower_bound|lower_limit|min)([_ ]|$)")
CEILING = re.compile(r"(?i)(^|[_ ])(ceiling|maximum|at_most|upper_bound|limit|budget|tolerance|tol|max)([_ ]|$)")
WRONG = re.compile(r"(?i)fail|problem|error|violation|regression|bad|broken")
LESS = re.compile(r"(?i)overhead|degradation|_drop|drop_|accuracy_loss|(^|_)(abs_)?diff(erence)?(_|$)|(^|_)error(_|$)")


def look(project: Project) -> Iterator[Site]:
    """Yield each comparison that counts a small gain, or a large loss, as passed."""
    for module in project.modules.values():
        for name, value in _verdicts(module):
            good = PASS.search(name) is not None and not FAIL.search(name)
            if not good and not FAIL.search(name):
                continue
            for compare in _conjuncts(value):
                if (problem := _turned(compare, wanted=good)) is not None:
                    yield broken(module, compare, f"{name}: {problem}")
        for compare, problem in (*_kept_best(module), *_failures(module)):
            yield broken(module, compare, problem)


def _verdicts(module: Module) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes(module, ast.Assign, ast.Dict, ast.keyword, ast.Assert):
        if isinstance(node, ast.Assign):
            yield tail_text(node.targets[0]).strip().rpartition(" ")[2], node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), value
        elif isinstance(node, ast.keyword):
            yield node.arg or "", node.value
        elif isinstance(node, ast.Assert):
            yield "passed", node.test


def _conjuncts(value: ast.expr) -> Iterator[ast.Compare]:
    if isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _conjuncts(part)
    elif isinstance(value, ast.Compare) and len(value.ops) == 1:
        yield value
    elif isinstance(value, ast.Call) and value.args and tail_text(value.func) == "bool":
        yield from _conjuncts(value.args[0])


def _turned(compare: ast.Compare, *, wanted: bool) -> str | None:
    """Return what is wrong with a comparison whose truth means passed (`wanted`) or failed."""
    left, right, op = compare.left, compare.comparators[0], compare.ops[0]
    if isinstance(left, ast.Constant):
        left, right = right, left
        below = isinstance(op, ast.Gt | ast.GtE)
    else:
        below = isinstance(op, ast.Lt | ast.LtE)
    if not isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) or not _is_bar(right):
        return None
    text = tail_text(left).strip().replace(" ", "_")
    if MORE.search(text) and not LESS.search(text) and below is wanted:
        return f"{text_of(compare)} is true where the gain is small"
    if LESS.search(text) and not MORE.search(text) and below is not wanted:
        return f"{text_of(compare)} is true where the loss is large"
    return None


def _is_bar(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value != 0
    return (
        re.search(
            r"(?i)target|min|wanted|expected|least|floor|threshold|required|bar|limit|tol|max|goal", tail_text(node)
        )
        is not None
    )


def _kept_best(module: Module) -> Iterator[tuple[ast.Compare, str]]:
    """Yield each comparison by which a value takes the place of the best one while it is worse."""
    for node in nodes(module, ast.If):
        if not isinstance(node, ast.If) or re.search(r"\bmode\b", text_of(function_of(node, module) or node)):
            continue
        for compare in _parts(node.test):
            for body, better in ((node.body, True), (node.orelse, False)):
                if _takes_over(compare, body) and _is_worse(compare, module, better=better):
                    yield compare, f"{text_of(compare)} keeps the worst value as the best one"
    for node in nodes(module, ast.Assign):
        if isinstance(node, ast.Assign) and BETTER.search(tail_text(node.targets[0])):
            for compare in _parts(node.value):
                if "best" in text_of(compare).lower() and _is_worse(compare, module, better=True):
                    yield compare, f"{text_of(compare)} is true where the value is worse"


def _parts(test: ast.expr) -> Iterator[ast.Compare]:
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        is_plain = isinstance(part, ast.Compare) and len(part.ops) == 1
        if is_plain and isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            yield part


def _base(node: ast.expr) -> ast.expr:
    """Return a stored value without the margin beside it."""
    while isinstance(node, ast.BinOp):
        node = node.left
    return node


def _takes_over(compare: ast.Compare, body: list[ast.stmt]) -> bool:
    """Return whether a branch stores the one side where the other one was."""
    sides = [_base(compare.left), _base(compare.comparators[0])]
    texts = {text_of(side) for side in sides}
    for statement in body:
        if not isinstance(statement, ast.Assign) or text_of(statement.value) not in texts:
            continue
        others = texts - {text_of(statement.value)}
        if any(text_of(target) in others and "best" in text_of(target) for target in statement.targets):
            return True
    return False


def _is_worse(compare: ast.Compare, module: Module, *, better: bool) -> bool:
    """Return whether what counts as better is worse, by where the search began or by what the value is called."""
    left, right = _base(compare.left), _base(compare.comparators[0])
    above = isinstance(compare.ops[0], ast.Gt | ast.GtE)
    stored_right = "best" in text_of(right).lower() or "best" not in text_of(left).lower()
    stored, value = (right, left) if stored_right else (left, right)
    grows = (above is stored_right) is better
    name = f"{tail_text(value)} {tail_text(stored)}".lower()
    if re.search(r"worst|max|peak|largest|highest|min_|smallest|lowest", tail_text(stored).lower()):
        return False
    begun = _beginning(stored, module)
    smaller, bigger = SMALLER.search(name) is not None, BIGGER.search(name) is not None
    wanted = {begun > 0} if begun is not None else set()
    wanted |= {smaller} if smaller is not bigger else set()
    return wanted == {grows}


def _beginning(stored: ast.expr, module: Module) -> int | None:
    """Return the sign of the infinity that a search begins with."""
    for node in nodes(module, ast.Assign, ast.AnnAssign):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        pairs = [(t, value) for t in targets]
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(targets[0].elts, value.elts, strict=False))
        for target, given in pairs:
            if given is not None and text_of(target) == text_of(stored) and INFINITY.fullmatch(text_of(given)):
                return -1 if "-" in text_of(given) else 1
    return None


def _failures(module: Module) -> Iterator[tuple[ast.Compare, str]]:
    """Yield each comparison of a benchmark that fails what holds its bar."""
    for node in nodes(module, ast.If):
        if isinstance(node, ast.If) and _fails(node.body) and is_benchmark(node, module):
            for compare in _parts(node.test):
                left, right = tail_text(compare.left), tail_text(compare.comparators[0])
                above = isinstance(compare.ops[0], ast.Gt | ast.GtE)
                for bar, other, is_above in ((right, left, above), (left, right, not above)):
                    low, high = FLOOR.search(bar) is not None, CEILING.search(bar) is not None
                    if not other or FLOOR.search(other) or CEILING.search(other) or low is high:
                        continue
                    if low is is_above:
                        yield (
                            compare,
                            f"{text_of(compare)} fails what is {'above its floor' if low else 'below its limit'}",
                        )


def _fails(body: list[ast.stmt]) -> bool:
    for statement in body:
        if isinstance(statement, ast.Raise):
            return True
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            continue
        if tail_text(call.func).endswith("sys exit") and call.args and constant(call.args[0]) != 0:
            return True
        added = isinstance(call.func, ast.Attribute) and call.func.attr in {"append", "add", "extend"}
        if added and isinstance(call.func, ast.Attribute) and WRONG.search(tail_text(call.func.value)):
            return True
    return False
