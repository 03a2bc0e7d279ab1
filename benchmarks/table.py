"""A table of cases that were judged: printed row by row, and written down where all of them were judged."""

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
Row = Sequence[str | bool]  # the cell that is true or false says whether a case was judged rightly
Case = tuple[str, Callable[[], Row]]


def tabulate(
    program: str, doc: str, title: str, cases: Iterable[Case], *, columns: Sequence[str], what: str, note: str = ""
) -> int:
    """Judge the cases whose name holds the word of `--only`, or all; return 1 if one was judged wrongly.

    The last column is the seconds that a case took.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD")
    only = parser.parse_args().only
    lines, wrong = [_line([*columns, "seconds"]), f"|{'---|' * (len(columns) + 1)}"], 0
    for name, judge in cases:
        if only in name:
            began = time.monotonic()
            row = judge()
            wrong += False in row
            lines.append(_line([*row, f"{time.monotonic() - began:.0f}"]))
            print(lines[-1], flush=True)
    said = f"{len(lines) - 2} {what}, {wrong} of them judged wrongly{note}."
    print(said)
    if not only:
        machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        threads = f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}"
        head = [f"# {title}", "", f"`python -m benchmarks.{program}`", "", f"{said} {machine}, {threads}.", ""]
        RESULTS.joinpath(f"{program}.md").write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    return int(wrong > 0)


def _line(cells: Row) -> str:
    words = {True: "yes", False: "**no**"}
    return f"| {' | '.join(words[cell] if isinstance(cell, bool) else cell.replace('|', '/') for cell in cells)} |"
