"""A command-line parser that reports a wrong argument in one line."""

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

WRONG_USAGE = 2


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line on stderr, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with code 2."""
        self.exit(WRONG_USAGE, f"error: {message}\n")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as one plain line each on stderr while the context lasts."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
        yield
