"""Ctrl-C and SIGTERM end a run with exit code 130, whatever they interrupt."""

import subprocess
import sys

import pytest
from building import PATIENCE_S, ROOT, clean

HEAD = "import os, signal, sys\nfrom pathlib import Path\nimport gates.__main__ as program\n"
STARTED = """
class Told:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIG{name})
class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIG{name})
def run(*_args, **_kwargs):
    {body}
import gates.cli
gates.cli.cli.main = run
program.main()
"""
WRONG = """
try:
    Late.__del__(None)
except KeyboardInterrupt:
    from gates.errors import UsageError
    raise UsageError("a model could not be built")
"""
INTERRUPTED = {
    "in plain code": "os.kill(os.getpid(), signal.SIG{name})",
    "in code made of text": "exec('os.kill(os.getpid(), signal.SIG{name})')",
    "while a class is made": "type('Made', (), {{'told': Told()}})",
    "where the input is taken to be wrong": WRONG.strip().replace("\n", "\n    "),
    "in a finalizer of what succeeds": "Late(); return 0",
    "in a finalizer": (
        "Late(); from gates.child.process import run as command; "
        "command([sys.executable, '-c', '1'], cwd=Path('/'), timeout_s=300, log=Path(os.devnull))"
    ),
}


def ended(code: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", code]
    return subprocess.run(argv, cwd=ROOT, env=clean(), capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.mark.parametrize("name", ["INT", "TERM"])
@pytest.mark.parametrize("where", INTERRUPTED)
def test_interrupt_is_never_lost(where: str, name: str) -> None:
    done = ended(HEAD + STARTED.format(body=INTERRUPTED[where].format(name=name), name=name))
    assert done.returncode == 130, done.stderr
    assert done.stderr.endswith("error: interrupted; the last reports are as they were\n")


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_second_interrupt_while_the_first_ends_the_run_is_no_error(name: str) -> None:
    again = f"os.kill(os.getpid(), signal.SIG{name})"
    code = f"""
class Late:
    def __init__(self, out):
        self.out = out
    def write(self, text):
        self.out.write(text)
        {again}
    def flush(self):
        {again}
sys.stdout, sys.stderr = Late(sys.stdout), Late(sys.stderr)
def run(*_args, **_kwargs):
    {again}
import gates.cli
gates.cli.cli.main = run
program.main()
"""
    done = ended(HEAD + code)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "error: interrupted; the last reports are as they were\n"


def test_interrupt_is_held_back_and_not_lost() -> None:
    done = ended(
        "import os, signal, time\n"
        "from gates.child.guardian import listen, uninterrupted\n"
        "listen()\n"
        "with uninterrupted():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(0.2)\n"
        "    print('held', flush=True)\n"
        "print('lost', flush=True)\n"
    )
    assert done.stdout == "held\n"


def test_exit_codes_are_seen_where_whoever_starts_us_ignores_the_end_of_children() -> None:
    body = "done = command([sys.executable, '-c', 'exit(3)'], cwd=Path('/'), timeout_s=300, log=Path(os.devnull))"
    imports = "from gates.child.process import run as command; "
    code = HEAD + STARTED.format(body=f"{imports}{body}; return done.exit_code", name="INT")
    ignoring = "import os, sys; from signal import *; signal(SIGCHLD, SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    argv = [sys.executable, "-c", ignoring, sys.executable, "-c", code]
    assert subprocess.run(argv, cwd=ROOT, env=clean(), check=False, timeout=PATIENCE_S).returncode == 3
