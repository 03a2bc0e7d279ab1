"""A command of ours that is called wrongly."""

from collections.abc import Callable

import pytest

Main = Callable[[list[str]], int]


def refused(main: Main, arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """Call a command, which must end with an exit code and say nothing but one line, and return that line."""
    try:
        ended: object = main(arguments)
    except SystemExit as caught:
        ended = caught.code
    out, err = capsys.readouterr()
    assert (ended, out, err.count("\n")) == (code, "", 1)
    return err
