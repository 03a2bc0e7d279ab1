"""The one option of this suite: golden files are rewritten only when somebody asks for it."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from what is rendered now")
