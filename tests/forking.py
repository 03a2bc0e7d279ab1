"""The command line in a process of its own that is forked from this one: it need not import everything again."""

import atexit
import functools
import gc
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import coverage

from gates import __main__, cli, pipeline
from gates.commands import run
from gates.evidence.measurements import installed
from gates.model import Model
from gates.scan.loading import load_rules

IMPORTED = (cli, pipeline.discover(), run, coverage)  # what every command needs, before the fork


@functools.cache
def _warmed() -> None:
    """Do once what each forked process would do again: schemas, rules, and the packages of this interpreter."""
    for model in _below(Model):
        model.model_rebuild()
    load_rules()
    installed(sys.executable)


def _below(model: type[Model]) -> Iterator[type[Model]]:
    for each in model.__subclasses__():
        yield each
        yield from _below(each)


def forked(project: Path, args: list[str], env: Mapping[str, str], limit_s: float) -> tuple[int, bytes, bytes]:
    """Run the command line in a project; return its exit code and what it wrote to stdout and stderr."""
    _warmed()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            _be_gates(project, args, env, out.fileno(), err.fileno())
        end = time.monotonic() + limit_s
        found, status = os.waitpid(pid, os.WNOHANG)
        while not found:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise TimeoutError(f"gates {' '.join(args)} did not end within {limit_s:g} s")
            time.sleep(0.005)
            found, status = os.waitpid(pid, os.WNOHANG)
        out.seek(0)
        err.seek(0)
        return os.waitstatus_to_exitcode(status), out.read(), err.read()


def _be_gates(project: Path, args: list[str], env: Mapping[str, str], out: int, err: int) -> NoReturn:
    """Be the command line, and never return."""
    code = 70
    gc.freeze()  # it need not look at what the test run holds
    try:
        atexit._clear()  # what the test run has to do at its end is none of this process
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.argv = ["gates", *args]
        os.chdir(project)
        os.environ.clear()
        os.environ.update(env)
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        try:
            __main__.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  # whatever it is, this process must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(code)
