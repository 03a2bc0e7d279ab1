"""Whether a statement speaks of the whole of a change, or of a part that its words or its section name."""

import re

from gates.claims._page import Form, Line

WORD = re.compile(r"[a-z][a-z0-9/-]{0,40}")
CODE = re.compile(r"`[^`]{0,300}`|[\w./-]{1,120}\.\w{1,5}\b")
WHOLE = frozenset(
    re.findall(
        r"\S+",
        """
        a acceptance all an analysis and are as assessment at audit benchmark benchmarks blocking breakdown by
        check code command complete completed completes conclusion counts coverage criteria decision despite
        details ended ends everything evidence executed executing execution executive exit final finding
        findings finished for from full gate gates got has have in is it measured measurement metric metrics
        numbers of on our out outcome output overall overview pass passed passes passing performance pytest
        quality reason recommendation report reported required requirements result results run running runs
        score specification stage status successful successfully suite suites summary test testing tests that
        the their there these this to tool total verdict verification was we were which whole with you
        """,
    )
)
ABOUT_AMP = frozenset(
    re.findall(
        r"\S+",
        """
        accuracy achieved actual amp average bf16 clock cpu cuda current difference effective estimated expected
        fp16 fp32 gain gpu half mean median memory mixed observed over peak potential precision projected
        reduction saved speed speed-up speedup step time training usage use vs wall
        """,
    )
)
GENERAL = re.compile(
    r"summary|overall|final|conclusion|breakdown|verdict|decision|assessment|recommendation|approv|certif|^score|result"
)


def part_of(line: Line, before: str, *, known: frozenset[str] = WHOLE) -> str:
    """Return the words that make a statement one about a part, from before it in its line or from its heading."""
    heading = line.heads[-1][1] if line.heads and line.heads[-1][0] > 1 and line.form is not Form.HEADING else ""
    odd = [word for text in (heading, before) for word in _words(text) if word not in known]
    return " ".join(odd)


def _words(text: str) -> list[str]:
    return [word.strip("/-") for word in WORD.findall(CODE.sub(" ", text).lower())]


def is_general(line: Line) -> bool:
    """Return whether a line stands where a report speaks of itself as a whole: at its top, in a summary, at its end."""
    heads = line.heads[:-1] if line.form is Form.HEADING else line.heads
    inner = [title for level, title in heads if level > 1]
    return not inner or bool(GENERAL.search(inner[-1].lower()))
