"""Garbage collection, put off while many values come to life of which none is garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Look for no garbage inside of the block: among many syntax trees the search takes longer than all the rest."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()  # what is alive counts as old now, so the next small search does not go through all of it
            gc.enable()
