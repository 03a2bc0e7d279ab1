"""Makes a step of the tested project at several sizes, and tells what each takes, or which lines take it.

    python -m gates_probe.scaling QUESTION JOURNAL

The project is imported once; all that is measured is measured in forks of that process, so that no size finds what
another left behind.
"""

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..asking import Teller, Unreachable, asked, found, give_up, leave, said
from ..calculating.calling import built
from ..places import Places
from .measuring import called, calls_of, lines_of, peak_of, times_of

SHARE = 0.75  # of the time limit, after which nothing new is begun


class Unfit(Exception):
    """What was returned is no step; the message says what it is."""


def main() -> None:
    """Do what was asked for, and leave at once when it was told."""
    question, tell = asked()
    try:
        make = found(question["call"])
    except Unreachable as error:
        give_up(tell, str(error))
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        give_up(tell, said(error), Places(question["root"]).innermost(error.__traceback__))
    until = time.monotonic() + SHARE * question["limit_s"]
    for name, work in _works(question, make):
        if time.monotonic() > until or not _forked(question, tell, name, work):
            break
    tell("end")
    leave()


def _works(question: dict[str, Any], make: Callable[..., Any]) -> list[tuple[str, Callable[[Teller], None]]]:
    """Return what is to be done, each in a process of its own, with its name."""
    sizes, of = question["sizes"], question["of"]

    def step(size: int) -> Callable[[], object]:
        return _step(make, question, size)

    def values(number: int) -> Callable[[Teller], None]:
        def work(tell: Teller) -> None:
            called(step(sizes[0]))  # what is loaded or made once is no part of a step
            measure = peak_of if of == "peak_memory_bytes" else calls_of
            for size in sizes:
                tell("value", size=size, restart=number, value=measure(partial(step, size)))

        return work

    def lines(size: int) -> Callable[[Teller], None]:
        return lambda tell: tell("lines", size=size, **lines_of(step(size), of, Places(question["root"])))

    if question["where"]:
        return [(f"size {size}", lines(size)) for size in (sizes[0], sizes[-1])]
    share = question["budget_s"] / question["restarts"]

    def times(number: int) -> Callable[[Teller], None]:
        return lambda tell: times_of(step, sizes, number, share, tell)

    measured = values if of in {"peak_memory_bytes", "python_calls"} else times
    return [(f"start {number + 1}", measured(number)) for number in range(question["restarts"])]


def _step(make: Callable[..., Any], question: dict[str, Any], size: int) -> Callable[[], object]:
    made = make(*built(question["args"]), **built(question["kwargs"]), **{question["argument"]: size})
    if not callable(made):
        raise Unfit(f"it returned {type(made).__name__}, expected the step: a function without arguments")
    return made  # type: ignore[no-any-return]  # whatever can be called


def _forked(question: dict[str, Any], tell: Teller, name: str, work: Callable[[Teller], None]) -> bool:
    """Do something in a fork; return whether it came to its end, and tell why not."""
    pid = os.fork()
    if not pid:
        tell.forked()
        _child(question, tell, name, work)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        tell("problem", what=f"at {name} it was killed by {signal.Signals(os.WTERMSIG(status)).name}", place=None)
    elif os.waitstatus_to_exitcode(status) == 0:
        tell("problem", what=f"at {name} it ended by itself", place=None)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == DONE


DONE = 77


def _child(question: dict[str, Any], tell: Teller, name: str, work: Callable[[Teller], None]) -> None:
    code = DONE
    try:
        work(tell)
    except BaseException as error:  # noqa: BLE001  # whatever the project raises is told
        what = str(error) if isinstance(error, Unfit) else f"at {name} it raises {said(error)}"
        tell("problem", what=what, place=Places(question["root"]).innermost(error.__traceback__))
        code = 2
    leave(code)


if __name__ == "__main__":
    main()
