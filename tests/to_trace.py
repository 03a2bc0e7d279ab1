"""A small project that `gates trace` finds nothing wrong with."""

TASK = """id: T1
title: Doubling
implementation: [pkg]
tests: [tests]
criteria:
  - id: AC1
    text: Double a number
    code: [{symbol: "pkg.core:double"}]
    tests: [tests/test_core.py]
  - id: AC2
    text: Halve a number
    code: [{symbol: "pkg.core:Half.of"}]
"""
CORE = """def double(n):
    return 2 * n


class Half:
    def of(self, n):
        return n / 2


def spare(n):
    return n
"""
TESTS = "from pkg.core import double\n\n\ndef test_double():\n    assert double(1) == 2\n"
MARKED = """import pytest as pt


@pt.mark.criterion('T1/AC2')
class TestHalf:
    def test_of(self):
        assert True
"""
FILES: dict[str, str | bytes] = {
    "pyproject.toml": "[tool.gates]\n",
    "pkg/__init__.py": "",
    "pkg/core.py": CORE,
    "tests/test_core.py": TESTS,
    "tests/test_half.py": MARKED,
    "tasks/T1.yaml": TASK,
}
