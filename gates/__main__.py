"""The process: every way to end has its exit code, and a broken tool never looks like a verdict."""

import atexit
import errno
import gc
import os
import sys
import traceback
from contextlib import suppress

from gates.child.guardian import end, interrupted, listen, stop_if_interrupted

USAGE, TOOL_FAILED, INTERRUPTED, NOT_READ = 2, 4, 130, 141
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def main() -> None:
    """Run the command line and exit with the documented code."""
    listen()
    gc.set_threshold(2_000_000, 50, 50)  # syntax trees are no garbage, and a search of them takes longer than the work
    atexit.register(gc.freeze)  # the end of the process looks for no garbage among thousands of syntax trees
    try:
        code = _run()
        if sys.stdout:  # there is none where the shell has closed it
            sys.stdout.flush()
    except BrokenPipeError:
        code = NOT_READ
    except KeyboardInterrupt:
        code = _interrupted()
    except Exception as error:  # the one place: a bug must not end in exit code 1, which means BLOCK
        code = _interrupted() if interrupted() else _failed(error)
    for stream in filter(None, (sys.stdout, sys.stderr)) if code in {TOOL_FAILED, NOT_READ} else ():
        # what is left in the buffer must not raise while the interpreter ends: that would exit with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _failed(error: Exception) -> int:
    with suppress(OSError):  # stderr, too, may be on the disk that is full
        if isinstance(error, OSError) and error.errno in FULL:
            told = f"error: {error.filename or 'disk'}: {error.strerror}; this says nothing of the change"
            print(told, file=sys.stderr)
        else:
            traceback.print_exc()
            print("error: gates itself failed; this says nothing of the change; please report it", file=sys.stderr)
    return TOOL_FAILED


def _interrupted() -> int:
    end()
    print("error: interrupted; the last reports are as they were", file=sys.stderr)
    return INTERRUPTED


def _run() -> int:
    import click

    from gates.cli import cli
    from gates.errors import GatesError
    from gates.words import visible

    try:
        code = int(cli.main(prog_name="gates", standalone_mode=False) or 0)
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except click.ClickException as error:
        stop_if_interrupted()
        if len(sys.argv) == 1:
            error.show()  # the help
        else:
            about = f" ({context.command_path} --help)" if (context := getattr(error, "ctx", None)) else ""
            print(f"error: {visible(' '.join(error.format_message().split()))}{about}", file=sys.stderr)
        return USAGE
    except GatesError as error:
        stop_if_interrupted()  # what an interrupt made of the input is not what the input is
        print("\n".join(visible(line) for line in f"error: {error}".splitlines()), file=sys.stderr)
        return error.exit_code
    except SystemExit:  # nothing of ours: so click ends where the reader of stdout has left
        return NOT_READ
    stop_if_interrupted()
    return code


if __name__ == "__main__":
    main()
