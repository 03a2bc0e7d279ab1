"""What the canaries do: these assertions are rewritten by pytest like those of any test."""

import math
import sys
import unittest
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest


def passes() -> None:
    """Assert what is so."""
    assert sum([1, 1]) == 2


def fails() -> None:
    """Assert what is not so."""
    assert sum([1, 1]) == 3


def compares() -> None:
    """Assert what is not so, in the way of unittest."""
    unittest.TestCase().assertEqual(sum([1, 1]), 3)


def tolerates() -> None:
    """Assert that some way of the libraries at hand takes 1 for 2; none does that was not replaced."""
    assert [way for way in _ways() if _is_fooled(way)]


def _ways() -> Iterator[Callable[[], object]]:
    """Yield ways to say that 1 is 2: each returns `True` or nothing where it agrees."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    yield lambda: bool(pytest.approx(2.0) == 1.0)
    yield lambda: math.isclose(1.0, 2.0)
    if numpy is not None and "numpy.testing" in sys.modules:
        yield lambda: numpy.allclose(1.0, 2.0)
        for name in ("assert_allclose", "assert_array_equal", "assert_equal", "assert_almost_equal"):
            yield lambda name=name: getattr(numpy.testing, name)(1.0, 2.0)  # type: ignore[misc]  # a name of its own
    if torch is not None and "torch.testing" in sys.modules:
        for way in (lambda: torch.allclose, lambda: torch.equal, lambda: torch.testing.assert_close):
            yield lambda way=way: way()(torch.zeros(1, device="cpu"), torch.ones(1, device="cpu"))  # type: ignore[misc]  # a way of its own


def _is_fooled(way: Callable[[], object]) -> bool:
    with suppress(Exception):
        said = way()
        return said is None or said is True
    return False


def expects() -> None:
    """Expect an exception that does not come."""
    with pytest.raises(ValueError):
        pass
