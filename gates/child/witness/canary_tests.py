"""What the canaries do: these assertions are rewritten by pytest like those of any test."""

import unittest

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


def expects() -> None:
    """Expect an exception that does not come."""
    with pytest.raises(ValueError):
        pass
