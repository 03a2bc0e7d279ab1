"""Does one thing of the tested project several times at once, and tells what came of it beside what comes of it alone.

    python -m gates_probe.concurrency QUESTION JOURNAL

In processes it is the one that starts the others, each of which runs this program too.
"""

import faulthandler
import sys
import time
from typing import Any

from ..asking import Teller, Unreachable, asked, give_up, leave, said
from ..calculating.values import TooMuch
from ..places import Places
from .at_once import AtOnce
from .processes import Child, Family
from .work import ENOUGH_OF_PROCESS_S, ENOUGH_S, Alone, Work, alone, work_of

LATE = 0.9  # of the time limit: then every thread's place is written down


def main() -> None:
    """Do what was asked for, and leave at once when it was told."""
    question, tell = asked()
    if question["where"] == "processes":
        Family(question, tell).run()
    else:
        faulthandler.dump_traceback_later(LATE * question["limit_s"], exit=True)
        _here(question, tell)
    if question["where"] != "process":
        tell("end")
    leave()


def _here(question: dict[str, Any], tell: Teller) -> None:
    """Do it in threads of this process, or as one process of several."""
    places = Places(question["root"])
    tell("start", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())
    work = _made(question, places, tell)
    child = Child(question) if question["where"] == "process" else None
    if child:
        child.ready()
    first = _alone(work, places, tell, question["worker"] if child else None)
    if child:
        child.rounds(work, first, tell, places)
    else:
        AtOnce(question, work, first, places, tell, time.monotonic() + question["budget_s"]).run()
    tell("threading", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())


def _made(question: dict[str, Any], places: Places, tell: Teller) -> Work:
    try:
        return work_of(question)
    except Unreachable as error:
        give_up(tell, str(error))
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        give_up(tell, said(error), places.innermost(error.__traceback__))


def _alone(work: Work, places: Places, tell: Teller, process: int | None) -> Alone:
    try:
        found = alone(work, ENOUGH_S if process is None else ENOUGH_OF_PROCESS_S)
    except TooMuch as error:
        give_up(tell, f"what it returns cannot be compared: {error}")
    except BaseException as error:  # noqa: BLE001  # whatever the project raises
        give_up(tell, f"alone it raises {said(error)}", places.innermost(error.__traceback__))
    for worker, text in found.results.items():
        tell("alone", process=process, worker=worker, result=text, again=found.again[worker])
    tell("took", seconds=found.seconds)
    return found


if __name__ == "__main__":
    main()
