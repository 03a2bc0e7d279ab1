"""A progress bar on stderr, for a person at a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: int, begun: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that moves the bar to a step; it does nothing where no terminal would show it."""
    if not (shown and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console  # only now: importing it costs more than a run without a bar should pay
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=total, completed=begun)
        yield lambda step: progress.update(task, completed=step)
