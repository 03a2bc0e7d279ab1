"""Numbers of a page that only a measurement can give: speedups, reductions, differences, times and sizes."""

import math
import re
from collections.abc import Iterator

from gates.claims._page import Line, Page
from gates.claims._scope import ABOUT_AMP, WHOLE, part_of
from gates.claims._sums import digits
from gates.claims.claim import Number

NUM = r"\d{1,9}(?:\.\d{1,6})?"
RANGE = rf"(?<![\w./])(~|\u2248|about |around )?({NUM})(?: ?[-\u2013] ?({NUM}))?"
TIMES = rf"{RANGE} ?[x\u00d7](?![\w+])"
SPEED = r"(?:speed-?ups?|faster|times as fast|acceleration)"
SPEEDUP_AFTER = re.compile(rf"{TIMES} {{0,2}}(?:\w{{1,12}} )?{SPEED}\b(?! target| goal)", re.IGNORECASE)
SPEEDUP_BEFORE = re.compile(
    rf"\bspeed-?up\b(?: is| was)?(?: \([^)]{{1,30}}\))?(?: ?[:=]| of| is| was)? {{0,2}}{TIMES}(?! target| goal)",
    re.IGNORECASE,
)
PERCENT = rf"{RANGE} ?%(?![\w+])"
FASTER = re.compile(rf"\+?{PERCENT} (?:\w{{1,12}} )?{SPEED}\b", re.IGNORECASE)
SPEED_GAIN = re.compile(rf"\bspeed-?up ?: ?\+?{PERCENT}", re.IGNORECASE)
MEMORY = r"(?:peak )?(?:memory|vram|ram)"
SAVED_BEFORE = re.compile(
    rf"\b{MEMORY}(?: usage| use| footprint| consumption)?(?: is| was)? (?:reduction|"
    rf"reduced|savings?|saved|decreased|lowered|efficiency)(?: by| of| is| was)? ?[:=]? ?\+?{PERCENT}",
    re.IGNORECASE,
)
SAVED_AFTER = re.compile(
    rf"{PERCENT} (?:\w{{1,12}} )?(?:less {MEMORY}|{MEMORY} (?:reduction|savings?|saved))\b(?! target| goal)",
    re.IGNORECASE,
)
REDUCTION = re.compile(rf"^reduction ?: ?{PERCENT}$", re.IGNORECASE)
ACCURACY = re.compile(
    rf"\baccuracy (?:difference|degradation|diff|drop|loss|delta)(?: is| was| of)? ?[:=]? ?{RANGE}( ?%)?(?![\w+])",
    re.IGNORECASE,
)
VALUE = re.compile(
    r"^((?:average |mean |median |peak |p\d\d )?(?:response time|latency|throughput|"
    r"step time|peak memory|peak usage|growth rate|memory growth|step_time_\w{1,6}|"
    rf"samples/s\w*)) ?(?:\([^)]{{1,30}}\) ?)?: ?{RANGE} ?(s|ms|us|min|GB|GiB|"
    r"MB|MiB|KB|samples/s\w*|tokens/s\w*|it/s|steps/s\w*)\b",
    re.IGNORECASE,
)
OWN = re.compile(
    r"\b(ratio|reduction|difference|value) (\w[\w.-]{0,40})(?:(/| to | - )(\w[\w.-]{0,40})"
    r")? of ([A-Za-z_][\w.:/-]{0,60})(?: (?:>=|<=|<) [-\d.e+]{1,20})? on (any|"
    r"cpu|cuda|rocm|xpu|mps)(?: \(\w{1,10}\))?(?: \| |: )(-?\d[\d.e+-]{0,20})"
    r"(?: \[| \| \[)"
)
GUESSED = re.compile(
    r"\b(project\w*|estimat\w*|expected|potential\w*|theoretical\w*|extrapolat\w*|"
    r"inspection|assum\w*|should|could|predicted)\b",
    re.IGNORECASE,
)
TARGET = re.compile(
    r"\b(targets?|goals?|threshold|minimum|at least|at most|requires?|requirements?|"
    r"required|must|wanted|criteri\w+|limit|bar|need\w*|verify|cannot|measure|"
    r"checks?|"
    r"acceptance|promised?|proposition|verification|expected|loss of potential|reduces potential)\b|[<>\u2264\u2265]",
    re.IGNORECASE,
)
ASKED = re.compile(
    r"\b(targets?|requirements?|criteria|goals?|expected|asked|what is wanted|"
    r"gaps?|missing|specification|remediation|required|before pass)\b"
)
PART = re.compile(
    r"\b(dataloader|loader|sync|i/o|prefetch\w*|batch|timing|component|efficiency|kernel|layer|from|during|in)\b",
    re.IGNORECASE,
)
CODELESS = re.compile(r"`[^`]{1,200}`")
PLAIN = re.compile(r"-?\d{1,15}(\.\d{1,15})?(e[+-]?\d{1,3})?")
BEFORE_AND_AFTER = 60
Found = tuple[Line, Number]


TOPICS = (
    (SPEEDUP_BEFORE, "ratio", "speedup"),
    (SPEEDUP_AFTER, "ratio", "speedup"),
    (SAVED_BEFORE, "reduction", "memory"),
    (SAVED_AFTER, "reduction", "memory"),
    (FASTER, "gain", "speedup"),
    (SPEED_GAIN, "gain", "speedup"),
    (ACCURACY, "difference", "accuracy"),
)


def numbers(page: Page) -> Iterator[Found]:
    """Yield the numbers that are stated as achieved, estimated ones marked as such; targets are no claims."""
    for line in page.prose:
        own = OWN.search(line.text)
        if own and PLAIN.fullmatch(own[7]) and math.isfinite(float(own[7])):
            yield line, _own(own)
            continue
        if ASKED.search(line.above):
            continue
        yield from _of_line(line)


def _of_line(line: Line) -> Iterator[Found]:
    text = line.text
    for pattern, what, about in TOPICS:
        match = pattern.search(text)
        if match and not _asked(text, match):
            yield line, _number(line, match, what, about)
            if about == "speedup":
                return
    match = REDUCTION.match(text)
    if match and "memory" in line.above:
        yield line, _number(line, match, "reduction", "memory")
    value = VALUE.match(text)
    if value and not _asked(text, value):
        yield line, _value(line, value)


def _asked(text: str, match: re.Match[str]) -> bool:
    """Return whether the words around a number make it a target, and not something that was reached."""
    before = text[max(0, match.start() - BEFORE_AND_AFTER) : match.start()]
    after = text[match.end() : match.end() + 14]
    return bool(
        TARGET.search(before) or re.match(r"\W{0,2}(target|goal|minimum|or more|required)", after, re.IGNORECASE)
    )


def _number(line: Line, match: re.Match[str], what: str, about: str) -> Number:
    roughly, low, high = match[1], match[2], match[3]
    percent = what in {"reduction", "gain"} or (about == "accuracy" and bool(match[4]))
    ends = _ends(low, high, roughly=bool(roughly))
    if percent:
        ends = (ends[0] / 100, ends[1] / 100)
    if what == "gain":
        ends = (1 + ends[0], 1 + ends[1])
    return Number(
        what="reduction" if what == "reduction" else "difference" if what == "difference" else "ratio",
        about=about,
        low=ends[0],
        high=ends[1],
        on=_device(line.text),
        part=what == "gain"
        or bool(part_of(line, line.text[: match.start()], known=WHOLE | ABOUT_AMP))
        or bool(PART.search(CODELESS.sub("", line.text))),
        guessed=bool(GUESSED.search(line.text) or GUESSED.search(line.above)),
    )


def _value(line: Line, match: re.Match[str]) -> Number:
    low, high = _ends(match[3], match[4], roughly=bool(match[2]))
    return Number(what="value", about=f"{match[1].lower()} in {match[5]}", low=low, high=high, part=True,
                  guessed=bool(GUESSED.search(line.text)), on=_device(line.text))  # fmt: skip


def _ends(low: str, high: str | None, *, roughly: bool) -> tuple[float, float]:
    """Return the ends of what a number says: half a unit of its last digit, a tenth of it where it says `about`."""
    first, last = float(low), float(high or low)
    slack_low, slack_high = (
        (0.1 * first, 0.1 * last) if roughly else (0.5 * 10 ** -digits(low), 0.5 * 10 ** -digits(high or low))
    )
    return min(first - slack_low, last), max(last + slack_high, first)


def _own(match: re.Match[str]) -> Number:
    """Return a number as our own reports print it: `ratio a/b of metric >= 1 on cpu: 2.01 [1.9, 2.1]`."""
    what, first, _, second, metric, device, value = match.groups()
    number = float(value)
    slack = abs(number) * 5e-4
    return Number.model_validate({
        "what": what, "low": number - slack, "high": number + slack, "of": metric, "on": device,
        "arms": tuple(arm for arm in (first, second) if arm),
    })  # fmt: skip


def _device(text: str) -> str:
    found = {
        name
        for name in ("cuda", "cpu", "rocm", "mps", "xpu")
        if re.search(rf"\bon (?:the |an? )?{name}\b", text, re.IGNORECASE)
    }
    return found.pop() if len(found) == 1 else "any"
