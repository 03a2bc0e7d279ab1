"""Whether tests pass in the project itself where no others run: some pass only by what others leave behind."""

import json
import secrets

from gates.child import process
from gates.context import Context
from gates.evidence.tests.pytest_run import PytestRun

EXTRA_S = 60.0
SLOWER = 5.0
LONGEST = 60_000  # characters of a command line
BAD = {"failed", "error"}


def failing_alone(tests: tuple[str, ...], run: PytestRun, context: Context) -> str:
    """Return the first of some tests that fails without the others of a run, twice, or nothing where none does."""
    if sum(map(len, tests)) > LONGEST:
        return ""
    seconds = sum(test.duration_s for test in run.tests if test.id in tests)
    limit_s = min(context.timeout_s, EXTRA_S + SLOWER * seconds)
    first = _failing(tests, context, limit_s)
    again = _failing(tests, context, limit_s) if first else []
    return next((test for test in first if test in again), "")


def _failing(tests: tuple[str, ...], context: Context, limit_s: float) -> list[str]:
    folder = context.evidence / f"alone-{secrets.token_hex(4)}"
    folder.mkdir()
    report = folder / "report.json"
    argv = [context.python, "-m", "pytest", *tests, f"--rootdir={context.root}", "-q", "-p", "no:cacheprovider",
            "--json-report", f"--json-report-file={report}", "--json-report-omit=collectors,log,streams,keywords",
            ]  # fmt: skip
    try:
        process.run(argv, cwd=context.root, timeout_s=limit_s, log=folder / "run")
        told = json.loads(report.read_text(encoding="utf-8"))
        return [str(test["nodeid"]) for test in told["tests"] if test["outcome"] in BAD]
    except (OSError, ValueError, KeyError, TypeError):
        return []
