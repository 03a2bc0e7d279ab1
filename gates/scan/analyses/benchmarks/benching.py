"""What tells a benchmark: the names of the arms, of what is measured, and of the code that measures."""

import ast
import re

from gates.scan.analyses.reading.code import tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module
from gates.scan.program.nodes import walk

CANDIDATE = re.compile(
    r"(?i)(^|[^a-z])(amp|fp16|float16|bf16|half|mixed|autocast|candidate|cand|new|optimi[sz]ed|compiled|fused|fast|treatment|after|measured|actual|quanti[sz]ed)([^a-z]|$)"
)
BASELINE = re.compile(
    r"(?i)(^|[^a-z])(fp32|float32|full|base|baseline|reference|ref|control|eager|original|unoptimi[sz]ed|slow|before|old|expected|naive|vanilla|plain)([^a-z]|$)"
)
RATE = re.compile(
    r"(?i)per[ _]?s(ec(ond)?s?)?([^a-z]|$)|/ ?s(ec(ond)?s?)?([^a-z]|$)|throughput|"
    r"(^|[^a-z])tput([^a-z]|$)|tok(en)?s?_s([^a-z]|$)|_rate|"
    r"samples_s|(^|[^a-z])(ips|fps|its?_s|tps|qps|rps|hz|[gt]?flops|bandwidth|[gm]bps)([^a-z]|$)"
)
GAIN = re.compile(r"(?i)speed_?up|faster|acceleration")
SAVED = re.compile(r"(?i)saved|saving|reduction|reduced|decrease")
CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "default_timer"}
WAITS = {"synchronize", "max_memory_allocated", "max_memory_reserved", "reset_peak_memory_stats"}
BENCH = re.compile(
    r"(?i)bench|speed|timing|(time_|(_|\b)time)(?!_?(line|out|series|stamp|step|zone))|measure|perf|latency|throughput|"
    r"per_sec|profil|compare"
)


def words(text: str) -> str:
    """Return a name with its parts told apart: `fp16Time` and `fp16_time` as `fp16 time`."""
    return re.sub(r"[_\W]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text))


def is_candidate(text: str) -> bool:
    """Return whether a name is that of the new arm."""
    return bool(CANDIDATE.search(words(text))) and not BASELINE.search(words(text))


def is_baseline(text: str) -> bool:
    """Return whether a name is that of the old arm."""
    return bool(BASELINE.search(words(text))) and not CANDIDATE.search(words(text))


def are_of_one_kind(one: str, other: str) -> bool:
    """Return whether two values are called by one word, as the same field of two arms is: `base.peak`, `row.peak`."""
    ends = [text.split()[-1:] for text in (one, other)]
    if not all(ends):
        return False
    measured = [end[0].partition("_")[2] for end in ends]
    return ends[0] == ends[1] or (measured[0] == measured[1] != "")


def called(node: ast.expr, module: Module, hops: int = 2) -> str:
    """Return the words that tell what a value is: its own, or those of what a variable was last set to."""
    text = tail_text(node)
    if not isinstance(node, ast.Name) or not hops or is_candidate(text) or is_baseline(text):
        return text
    around = (a for a in module.ancestors(node) if isinstance(a, ast.FunctionDef | ast.AsyncFunctionDef))
    found = set_before(next(around, module.tree), node.id, node.lineno)
    if len(found) != 1:
        return text
    made = found[0][0]
    return f"{text} {called(made, module, hops - 1)} {_passed(made)}"


def _passed(made: ast.expr) -> str:
    """Return what tells an arm among the arguments of a call: `run(fp16_model)`, `run(model, amp=False)`."""
    if not isinstance(made, ast.Call):
        return ""
    given = [str(a.value) if isinstance(a, ast.Constant) else tail_text(a) for a in made.args]
    for option in made.keywords:
        value = (
            getattr(option.value, "value", None) if isinstance(option.value, ast.Constant) else tail_text(option.value)
        )
        if value is False and is_candidate(option.arg or ""):
            given.append("baseline")
        else:
            given.append(f"{option.arg}" if value is True else str(value))
    return " ".join(each for each in given if is_candidate(each) or is_baseline(each))


def _measures(node: ast.AST, module: Module) -> bool:
    """Return whether the function around reads a clock and waits for the device, as only a measurement does."""
    for around in (node, *module.ancestors(node)):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {n.attr for n in walk(around) if isinstance(n, ast.Attribute)}
            return bool(names & CLOCKS) and bool(names & WAITS)
    return False


def is_benchmark(node: ast.AST, module: Module) -> bool:
    """Return whether code stands in what is called a benchmark, or in a function that measures."""
    return is_called_benchmark(node, module) or _measures(node, module)


def is_called_benchmark(node: ast.AST, module: Module) -> bool:
    """Return whether code stands in a file, class or function that is called a benchmark."""
    if BENCH.search(module.path.rpartition("/")[2]):
        return True
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    around = (node, *module.ancestors(node))
    return any(isinstance(a, named) and BENCH.search(getattr(a, "name", "")) for a in around)
