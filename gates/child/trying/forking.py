"""Imports what tests need, once, and forks a worker for each plan; where that is not safe, starts it afresh."""

import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from .keeping import PLAN
from .session import warm_up
from .work import work

Told = dict[str, Any]


def main() -> None:
    """Work through orders, each a line that names plans, and answer each with an empty line."""
    asked = json.loads(sys.argv[1])
    pipes = asked["orders"], asked["answers"]
    for number in pipes:
        os.set_inheritable(number, False)
    here, paths = os.getcwd(), list(sys.path)  # noqa: PTH109
    sys.path[:] = [path for path in paths if path != here]  # nothing of the project is imported by its name
    forks = warm_up(asked["packages"], asked["modules"])
    with os.fdopen(asked["orders"], encoding="utf-8") as orders:
        for line in orders:
            order = json.loads(line)
            forks = forks and warm_up(order["packages"], asked["modules"])
            plans = (json.loads(Path(path).read_text(encoding="utf-8")) for path in order["plans"])
            for pid in [_forked(plan, here, paths, pipes) if forks else _started(plan) for plan in plans]:
                os.waitpid(pid, 0)
            os.write(asked["answers"], b"\n")


def _forked(plan: Told, here: str, paths: list[str], pipes: tuple[int, ...]) -> int:
    """Work through a plan in a fork, as if it had been started in its copy; return its id."""
    if pid := os.fork():
        return pid
    try:
        for number in pipes:  # what a test leaves running must not hold them open
            os.close(number)
        os.chdir(plan["root"])
        both = (os.environ, here), (plan["env"], plan["root"])  # entries of the path may be relative
        before, now = ([os.path.join(at, p) for p in env["PYTHONPATH"].split(os.pathsep)] for env, at in both)  # noqa: PTH118
        first = [plan["root"]] if here in paths else []
        sys.path[:] = [*first, *now, *(path for path in paths if path not in {here, *before})]
        os.environ |= plan["env"]
        tempfile.tempdir = None
        work(plan, forked=True)
    except BaseException:  # noqa: BLE001  # whatever it is, this process must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(0)


def _started(plan: Told) -> int:
    argv = [sys.executable, "-m", f"{__package__}.work", str(Path(plan["scratch"], PLAN))]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, cwd=plan["root"], env={**os.environ, **plan["env"]})
    child.returncode = 0  # its end is waited for by its number
    return child.pid


if __name__ == "__main__":
    main()
