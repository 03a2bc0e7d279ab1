"""Which way a measured value is better: by what it is called, by what is said of it, by where its search began."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import words
from gates.scan.analyses.reading.code import callee, class_of, constant, function_of, nodes, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project

SMALLER = re.compile(
    r"(?i)loss|error|divergence|latency|perplexity|(^|[_ ])(err|ppl|wer|cer|ter|der|eer|mae|mse|nmse|rmse|mape|smape|"
    r"fid|kid|fvd|lpips|nll|bpc|bpb|bpd|nme|epe|mpjpe|ade|fde|ece|brier|regret|hd95|drift|deviation)([_ ]|$)"
)
BIGGER = re.compile(
    r"(?i)accuracy|(^|[_ ])(acc|acc1|acc5|top1|top5|f1|auc|auroc|auprc|iou|miou|map|ap|ap50|bleu|rouge|cider|mrr|ndcg|"
    r"score|reward|psnr|ssim|dice|recall|mcc|kappa|pck|sdr|snr|pesq|stoi|throughput|fitness)([_ ]|$)"
)
WEAK = re.compile(r"(?i)(^|[_ ])scores?([_ ]|$)")  # some are better where they are small
LOWEST = re.compile(
    r"(?i)(lower|smaller|less) (is|=|means) better|the (lower|smaller) the better|\b(lowest|smallest)\b"
)
HIGHEST = re.compile(
    r"(?i)(higher|larger|bigger|more) (is|=|means) better|the (higher|larger) the better|\b(highest|largest|greatest)\b"
)
CERTAIN = re.compile(
    r"(?i)(^|[^a-z])(loss|accuracy|perplexity|ppl|wer|cer|mae|mse|rmse|acc|top1|f1|auc|auroc|bleu|iou|miou|psnr|dice)([^a-z]|$)"
)
SEARCHED = re.compile(r"(?i)attack|advers|perturb|hardest|worst|mining|maximi[sz]e|minimi[sz]e|negat|lr_find")
INFINITY = re.compile(r"""(?i)-?((math|np|numpy|torch)\.inf|float\(['"][-+]?inf(inity)?['"]\))""")
HUGE = 1e6
HOPS = 3


def by_name(text: str) -> bool | None:
    """Return whether a value of a name is better where it is larger; `None` where the name does not tell."""
    smaller, bigger = SMALLER.search(words(text)) is not None, BIGGER.search(words(text)) is not None
    return bigger if smaller is not bigger else None


def by_text(text: str) -> bool | None:
    """Return the same by what is said of a value in a sentence."""
    lowest, highest = LOWEST.search(text) is not None, HIGHEST.search(text) is not None
    return highest if lowest is not highest else None


def directions(project: Project, module: Module, value: ast.expr, stored: ast.expr) -> set[bool]:
    """Return what tells whether a value is better where it is larger than the stored one; all of it should agree."""
    begun = beginning(stored, module)
    found = {begun < 0} if begun is not None else set()
    text = f"{tail_text(value)} {tail_text(stored)}"
    named = by_name(text)
    if named and not by_name(WEAK.sub(" ", words(text))) and _is_composed(value, module):
        named = None
    if named is False and not found and _is_searched(module, value):
        named = None  # an attack looks for a large loss
    if named is not None and named not in found and found and _is_certain(project, module, value):
        return {named}  # the search begins at the wrong end, too
    found |= {named} if named is not None else set()
    if not found:
        found = {told for told in _told(project, module, value) if told is not None}
    return found


def _is_certain(project: Project, module: Module, value: ast.expr) -> bool:
    """Return whether a value is what its name says, whatever a search for the best one began with."""
    if not CERTAIN.search(words(tail_text(value))) or _is_composed(value, module):
        return False
    if _is_searched(module, value):
        return False
    made = [f for _, f in origins(project, module, value, HOPS) if f is not None]
    return not any(isinstance(n, ast.USub) for f in made for each in inner(f, ast.Return) for n in walk(each))


def _is_searched(module: Module, value: ast.expr) -> bool:
    """Return whether the function around looks for what is bad on purpose."""
    around = function_of(value, module)
    return SEARCHED.search(text_of(around) if around is not None else text_of(value)) is not None


def _is_composed(value: ast.expr, module: Module) -> bool:
    """Return whether a value is computed where it is compared, so that its name may mean anything."""
    if not isinstance(value, ast.Name):
        return not isinstance(value, ast.Attribute | ast.Subscript | ast.Call)
    before = set_before(function_of(value, module) or module.tree, value.id, value.lineno)
    return any(not isinstance(found, ast.Call | ast.Attribute | ast.Subscript | ast.Name) for found, _ in before)


def _told(project: Project, module: Module, value: ast.expr) -> Iterator[bool | None]:
    """Yield what docstrings around a value, and those of what computes it, say of it, and how that is called."""
    for around in (function_of(value, module), class_of(value, module)):
        if around is not None:
            yield by_text(ast.get_docstring(around) or "")
    for name, function in origins(project, module, value, HOPS):
        yield by_name(name)
        yield by_text(ast.get_docstring(function) or "") if function is not None else None


def origins(project: Project, module: Module, node: ast.expr, hops: int) -> Iterator[tuple[str, Function | None]]:
    """Yield the names of what a value was made by, and its function where that is the program's own."""
    if isinstance(node, ast.Call):
        yield tail_text(node.func), callee(project, module, node)
    if not isinstance(node, ast.Name) or not hops:
        return
    function = function_of(node, module)
    before = set_before(function or module.tree, node.id, node.lineno)
    for value, _ in before:
        if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
            yield tail_text(value), None
        yield from origins(project, module, value, hops - 1)
    if not before and function is not None:
        bound = project.scope_of(function, module).owner is not None
        for call, there in project.named.get(function.name, [])[:5]:
            passed = argument(call, function, node.id, bound=bound)
            if passed is not None:
                yield tail_text(passed), None
                yield from origins(project, there, passed, hops - 1)


def beginning(stored: ast.expr, module: Module) -> int | None:
    """Return the sign of the extreme value that a search begins with."""
    for node in nodes(module, ast.Assign, ast.AnnAssign):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        pairs = [(t, value) for t in targets]
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(targets[0].elts, value.elts, strict=False))
        for target, given in pairs:
            if given is not None and text_of(target) == text_of(stored) and (sign := _extreme(given)) is not None:
                return sign
    return None


def _extreme(node: ast.expr) -> int | None:
    if INFINITY.fullmatch(text_of(node)):
        return -1 if "-" in text_of(node) else 1
    value = constant(node)
    if isinstance(value, int | float) and abs(value) >= HUGE:
        return -1 if value < 0 else 1
    return None
