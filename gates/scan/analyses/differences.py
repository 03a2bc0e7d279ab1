"""Differences of two arms held against a tolerance on one side only."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import called, is_baseline, is_candidate, words
from gates.scan.analyses.benchmarks.differences import CONVERTS, Way, behind
from gates.scan.analyses.benchmarks.directions import by_name
from gates.scan.analyses.benchmarks.replacing import of_loops
from gates.scan.analyses.benchmarks.siblings import label_of
from gates.scan.analyses.reading.code import broken, calls, constant, function_of, nodes, statement_of, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Function, Module, names_of, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("baseline*", "fp32*", "float32", "reference*", "control*", "eager*", "base_*", "full_*", "_ref*",
         "ref_*", "expected*", "naive*", "plain*", "vanilla*", "atol", "rtol", "tolerance*", "golden*",
         "double", "ref", "tol", "diff", "drift*", "parity*")  # fmt: skip
BAR = re.compile(r"(?i)tol|eps|delta|thresh|limit|max_|margin|within")
RELATIVE = re.compile(r"(?i)^(rel|relative|bound|slack|allowed)$")
CLOSE = re.compile(r"(?i)(^|[^a-z])([ar]?tol|tols|tolerances?|eps|epsilon)([^a-z]|$)")
ALIKE = re.compile(r"(?i)close|equal|same|match|parity|agree|identical|equivalen|consisten|within|accurate|toleran")
SAME = re.compile(
    r"(?i)(^|[^a-z])(same|equal|identical|match(es)?|agrees?|alike|equivalent|consistent|unchanged|preserved|parity|within|"
    r"close)([^a-z]|$)"
)
LIMITS = re.compile(
    r"(?i)(^|_)(targets|criteri(a|on)|requirements?|budgets?|allowances?|acceptance|goals|bars|gates?)$"
)
APART = re.compile(r"(?i)(^|[^a-z])(abs_?)?(diff|difference|deviation|discrepancy|distance|mismatch)([^a-z]|$)")
WITHIN = re.compile(r"^(Within|Close|Same|Equal|Parity|Match|Agree)|(Within|Close|Same|Equal|Parity|Match|Tolerance)$")
ASKS = re.compile(r"^_*(check|passes|passed|holds|ok|judge|verify|__call__|test|met|satisfied)")
REFERENCE = re.compile(r"(?i)(^|[^a-z])(ref|refs|references?|fp32|float32|expected|eager|golden)([^a-z]|$)")
MINE = re.compile(
    r"(?i)(^|[^a-z])(lr|old|new|before|after|decay|start|end|prev|last|begin|t0|now)([^a-z]|$)|improv|patience|best|early|"
    r"faster|better|gain|saved|overhead|time|second|(^|[^a-z])ms([^a-z]|$)|memory|peak|elapsed"
)
EITHER = re.compile(
    r"(?i)drop|worse|regress|degradation|no_loss|increase|exceed|slower|higher|lower|too_|below|above|converge|\brise|_rise|"
    r"at[_ ]most|one[-_ ]?sided|\b(loses?|losing|lost|costs|hurts?|harms?)\b"
)
PASSES = re.compile(r"(?i)\b(is |was )?(exceed(s|ed|ing)?|above|higher than|too (large|big|high|wide))\b")
NEW = re.compile(r"(?i)(^|[^a-z])(new|after)([^a-z]|$)")
TURNS = re.compile(r"(?i)(^|[^a-z])(new|after|old|before)([^a-z]|$)")
LARGEST = frozenset({"max", "amax", "nanmax", "maximum"})
UNSIGNED = re.compile(r"(?i)(^|_)err|error|diff|deviation|distance|dist$|discrepan|mismatch|gap$|divergence")
SIGNED = re.compile(r"(?i)(^|_)signed|bias|change|delta")


def look(project: Project) -> Iterator[Site]:
    """Yield each `new - old < tolerance` without `abs`, where closeness is asked for."""
    told: set[tuple[str, int]] = set()
    for module in project.modules.values():
        for node in nodes(module, ast.Compare):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                continue
            left, bar = node.left, node.comparators[0]
            if not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                continue
            if _is_close(left) and not _is_close(bar):
                left, bar = bar, left
            if not _is_bar(bar) and not _is_relative(bar, node, module):
                continue
            way = Way()
            found = behind(project, left, module, way)
            if found is None or _is_meant(project, node, module, way):
                continue
            looped = of_loops(of_loops(found, found, module), node, module)
            around = function_of(found, module) or function_of(node, module)
            alike = _is_asked_alike(node, module, around) or any(APART.search(words(name)) for name in way.names)
            are_arms = any(_are_arms(each, bar, _home(each, module, way), alike=alike) for each in (found, looped))
            if not are_arms and not (way.is_elementwise and _is_of_reference(looped, bar, _home(looped, module, way))):
                continue
            there, place = _unsigned(project, found, way, function_of(node, module)) or (module, node)
            if place is node or (there.path, found.lineno) not in told:
                yield broken(there, place, f"{text_of(node)} without abs() is blind to one side")
            told |= {(there.path, found.lineno)} if place is found else set()


def _unsigned(project: Project, found: ast.BinOp, way: Way, asking: Function | None) -> tuple[Module, ast.AST] | None:
    """Return where the difference is taken, if a helper takes it which should give no sign: `max_error(out, ref)`."""
    helper, module = way.helpers[-1] if way.helpers else (None, None)
    if module is None or helper is None or helper is asking:
        return None
    is_largest = bool(LARGEST & set(way.reductions))
    name = way.keys[-1] if way.keys else helper.name
    if not is_largest and not _is_unsigned(name):
        return None
    if any(_is_made_unsigned(*site) for site in project.named.get(helper.name, [])):
        return None
    return None if way.keys and _is_read_unsigned(project, name) else (module, found)


def _is_unsigned(name: str) -> bool:
    """Return whether a name says how far off something is, not to which side: a gap, an error."""
    return UNSIGNED.search(name) is not None and SIGNED.search(name) is None


def _is_read_unsigned(project: Project, key: str) -> bool:
    """Return whether `abs()` is taken anywhere of what stands under a key."""
    taken = ((c, m) for name in ("abs", "fabs", "absolute") for c, m in project.named.get(name, []))
    values = (value for call, _ in taken for value in (*call.args, call.func))
    return any(key in names_of(part) for value in values for part in walk(value) if isinstance(part, ast.expr))


def _is_made_unsigned(call: ast.Call, module: Module) -> bool:
    """Return whether `abs()` is taken of what a call gives, there or of the variable that it is kept in."""
    statement = statement_of(call, module)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = {text_of(target) for target in targets}
    for taken in calls(function_of(call, module) or module.tree):
        if tail_of(taken.func) in {"abs", "fabs", "absolute", "isclose"}:
            values = [*taken.args, taken.func]
            if any(part is call or text_of(part) in kept for value in values for part in walk(value)
                   if isinstance(part, ast.expr)):  # fmt: skip
                return True
    return False


def _is_bar(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value < 1
    if isinstance(node, ast.Attribute | ast.Subscript) and LIMITS.search(tail_of(node.value)):
        return True
    return BAR.search(tail_text(node)) is not None or (isinstance(node, ast.BinOp | ast.Call) and _is_close(node))


def _is_relative(bar: ast.expr, node: ast.Compare, module: Module) -> bool:
    """Return whether a bar is called a share, in a function that asks if two are the same: `gap <= rel`."""
    return RELATIVE.search(tail_of(bar)) is not None and _is_asked_alike(node, module, function_of(node, module))


def _tolerances(node: ast.expr) -> list[ast.expr]:
    """Return the names that a bar is reckoned of: of `atol + rtol * abs(ref)`, each."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Div):
        return [*_tolerances(node.left), *_tolerances(node.right)]
    if isinstance(node, ast.Call) and tail_of(node.func) in {"max", "maximum"}:
        return [each for arg in node.args for each in _tolerances(arg)]
    return [node]


def _is_close(node: ast.expr) -> bool:
    """Return whether a bar is called a tolerance, as for what should be the same."""
    return any(
        isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and bool(CLOSE.search(words(tail_text(each))))
        for each in _tolerances(node)
    )


def _is_asked_alike(node: ast.Compare, module: Module, function: Function | None) -> bool:
    """Return whether a comparison asks if two are the same: by its function's name, or by that of its answer."""
    if function is not None and ALIKE.search(function.name) is not None:
        return True
    owner = next((a for a in module.ancestors(node) if isinstance(a, ast.ClassDef)), None)
    if owner is not None and WITHIN.search(owner.name) and function is not None and ASKS.search(function.name):
        return True
    outer = module.parents.get(node)
    targets = outer.targets if isinstance(outer, ast.Assign) else []
    return any(SAME.search(words(text)) for text in (label_of(node, module), *map(tail_text, targets)))


def _are_arms(node: ast.BinOp, bar: ast.expr, module: Module, *, alike: bool) -> bool:
    """Return whether a difference is that of two arms, or of a value and what it should be close to."""
    left, right = _told(_plain(node.left), module), _told(_plain(node.right), module)
    if not left.strip() or not right.strip():
        return False
    against = alike and REFERENCE.search(words(right)) is not None  # where what is new is no later time
    are_scores = alike and _are_opposed(left, right) and by_name(left) is not None  # of a model before and after
    told = [(TURNS if are_scores else NEW).sub(" ", words(left)) if against or are_scores else words(left)]
    told.append(TURNS.sub(" ", words(right)) if are_scores else words(right))
    if any(map(MINE.search, told)):
        return False
    if is_baseline(left) and is_candidate(right):
        return alike or by_name(left) is not True or by_name(right) is not True  # else it is a drop of a score
    if is_candidate(left) and is_baseline(right):
        return True
    close = _is_close(bar)
    is_known = any(is_baseline(each) or REFERENCE.search(words(each)) is not None for each in (left, right))
    return (close and (is_baseline(left) or is_baseline(right) or alike)) or (alike and is_known)


def _are_opposed(left: str, right: str) -> bool:
    return (is_baseline(left) and is_candidate(right)) or (is_candidate(left) and is_baseline(right))


def _is_of_reference(node: ast.BinOp, bar: ast.expr, module: Module) -> bool:
    """Return whether elements are compared with those of what they should be; within a tolerance, new ones too."""
    sides = [words(_told(_plain(side), module)) for side in (node.left, node.right)]
    if sum(REFERENCE.search(side) is not None for side in sides) != 1:
        return False
    others = [NEW.sub(" ", side) if _is_close(bar) else side for side in sides]
    return not any(MINE.search(other) or not side.strip() for side, other in zip(sides, others, strict=True))


def _home(node: ast.BinOp, module: Module, way: Way) -> Module:
    """Return the file that a difference was found in: of the asking one and those of the helpers on the way."""
    names = [n for side in (node.left, node.right) for n in walk(side) if isinstance(n, ast.Name)]
    files = (module, *(there for _, there in way.helpers))
    return next((file for file in files if any(name in file.parents for name in names)), module)


def _told(node: ast.expr, module: Module) -> str:
    """Return the words that tell what a side is; of what is only called new or old, what it is set to."""
    if isinstance(node, ast.Subscript):
        key = constant(node.slice)
        return f"{_told(node.value, module)} {key if isinstance(key, str) else ''}"
    found = called(node, module)
    before = (
        set_before(function_of(node, module) or module.tree, node.id, node.lineno) if isinstance(node, ast.Name) else []
    )
    made = tail_text(before[0][0]) if len(before) == 1 and MINE.search(words(found)) else ""
    return made if is_candidate(made) or is_baseline(made) else found


def _plain(node: ast.expr) -> ast.expr:
    """Return the value under conversions: of `out.float()`, `out`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not node.args:
            node = node.func.value
        elif tail_of(node.func) in CONVERTS and len(node.args) == 1:
            node = node.args[0]
        else:
            break
    return node


def _is_meant(project: Project, node: ast.Compare, module: Module, way: Way) -> bool:
    """Return whether the other side is asked for, too, or a name or a docstring says that one side is meant."""
    statement = next((a for a in module.ancestors(node) if isinstance(a, ast.stmt)), None)
    text = text_of(statement) if isinstance(statement, ast.Assign | ast.Return | ast.Assert | ast.Expr) else ""
    if isinstance(statement, ast.If):
        text = f"{text_of(statement.test)} {' '.join(text_of(s) for s in statement.body[:2])}"
    label = label_of(node, module)
    if label and isinstance(module.parents.get(node), ast.Dict | ast.keyword):
        text = f"{label} {text_of(node)}"  # what is said of the others says nothing of this one
    if MINE.search(text.partition("=")[0]) and not isinstance(statement, ast.If):
        return True
    if MINE.search(label) or EITHER.search(label) or _is_gain(node, module):
        return True
    around = function_of(node, module)
    said = [around.name, ast.get_docstring(around) or ""] if around is not None else []
    if any(_is_unsigned(name) for name in way.names if name.isidentifier()):  # "the gap is above 0.1" says no side
        text = PASSES.sub("", text)
    return EITHER.search(" ".join([text, *said, *way.names])) is not None or _both_asked(project, node, module)


def _is_gain(node: ast.Compare, module: Module) -> bool:
    """Return whether a difference must be above the bar: `assert saved >= 0.3`, and each one of a list."""
    return isinstance(node.ops[0], ast.Gt | ast.GtE) and isinstance(
        module.parents.get(node), ast.Assert | ast.List | ast.Tuple
    )


def _both_asked(project: Project, node: ast.Compare, module: Module) -> bool:
    """Return whether the same difference, or the one turned round, is held against something once more."""
    function = function_of(node, module) or module.tree
    mine = _differences(project, node, module)
    others = (c for c in inner(function, ast.Compare) if isinstance(c, ast.Compare) and c is not node)
    return any(mine & _differences(project, other, module) for other in others)


def _differences(project: Project, node: ast.Compare, module: Module) -> set[frozenset[str]]:
    sides = (side.operand if isinstance(side, ast.UnaryOp) else side for side in (node.left, *node.comparators))
    found = [behind(project, side, module, Way()) for side in sides]
    return {frozenset((text_of(f.left), text_of(f.right))) for f in found if f is not None}
