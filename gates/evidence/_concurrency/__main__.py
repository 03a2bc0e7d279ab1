"""Does one thing of the tested project several times at once, and tells what came of it beside what comes of it alone.

    python -m gates_probe._concurrency ASKED JOURNAL

ASKED is a file of JSON, gone once it is read: its secret signs the journal, so that no line of it is the project's.
"""

import faulthandler
import json
import os
import sys
import time
from typing import Any

from .._calculating.calling import Unreachable
from .._calculating.values import TooMuch
from .._leaks.journal import Teller
from .alone import ENOUGH_OF_PROCESS_S, ENOUGH_S, Alone, alone
from .at_once import AtOnce
from .places import Places
from .processes import Child, Family
from .rounds import said
from .work import Work, work_of

LATE = 0.9  # of the time limit: then every thread's place is written down


def main() -> None:
    """Do what was asked for, and leave at once when it was told."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        asked = json.load(file)
    os.remove(sys.argv[1])  # noqa: PTH107
    tell = Teller(sys.argv[2], asked["secret"])
    sys.argv = [asked["call"] or asked["shared"]]
    sys.path[:1] = asked["paths"][:1]
    sys.path += [path for path in asked["paths"][1:] if path not in sys.path]
    if asked["where"] == "processes":
        Family(asked, tell).run()
    else:
        faulthandler.dump_traceback_later(LATE * asked["limit_s"], exit=True)
        _here(asked, tell)
    if asked["where"] != "process":
        tell("end")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the project closed it
            continue
    os._exit(0)  # what stands still, or goes on, is none of what was asked for


def _here(asked: dict[str, Any], tell: Teller) -> None:
    """Do it in threads of this process, or as one process of several."""
    places = Places(asked["root"])
    tell("start", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())
    work = _made(asked, places, tell)
    child = Child(asked) if asked["where"] == "process" else None
    if child:
        child.ready()
    first = _alone(work, places, tell, asked["worker"] if child else None)
    if child:
        child.rounds(work, first, tell, places)
    else:
        AtOnce(asked, work, first, places, tell, time.monotonic() + asked["budget_s"]).run()
    tell("threading", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())


def _made(asked: dict[str, Any], places: Places, tell: Teller) -> Work:
    try:
        return work_of(asked)
    except Unreachable as error:
        _leave(tell, str(error))
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        _leave(tell, said(error), places.innermost(error.__traceback__))
    raise SystemExit(2)


def _alone(work: Work, places: Places, tell: Teller, process: int | None) -> Alone:
    try:
        found = alone(work, ENOUGH_S if process is None else ENOUGH_OF_PROCESS_S)
    except TooMuch as error:
        _leave(tell, f"what it returns cannot be compared: {error}")
    except BaseException as error:  # noqa: BLE001  # whatever the project raises
        _leave(tell, f"alone it raises {said(error)}", places.innermost(error.__traceback__))
    for worker, text in found.results.items():
        tell("alone", process=process, worker=worker, result=text, again=found.again[worker])
    tell("took", seconds=found.seconds)
    return found


def _leave(tell: Teller, problem: str, place: list[object] | None = None) -> None:
    tell("problem", what=problem, place=place)
    sys.stdout.flush()
    os._exit(2)


if __name__ == "__main__":
    main()
