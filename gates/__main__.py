"""The process: every way to end has its exit code, and a broken tool never looks like a verdict."""

import os
import signal
import sys
import traceback
from types import FrameType

import click

from gates.errors import GatesError

USAGE, TOOL_FAILED, INTERRUPTED = 2, 4, 130


def main() -> None:
    """Run the command line and exit with the documented code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to flush
        code = TOOL_FAILED
    sys.exit(code)


def _run() -> int:
    try:
        from gates.cli import cli

        result = cli.main(prog_name="gates", standalone_mode=False)
    except SystemExit as exit_:
        return int(exit_.code or 0)
    except (KeyboardInterrupt, click.Abort):
        print("error: interrupted; the last reports are as they were", file=sys.stderr)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE
    except GatesError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        raise
    except Exception:  # the one place: a bug must not end in exit code 1, which means BLOCK
        traceback.print_exc()
        print("error: gates itself failed; this says nothing of the change; please report it", file=sys.stderr)
        return TOOL_FAILED
    return int(result or 0)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
