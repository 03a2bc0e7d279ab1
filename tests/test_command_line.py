"""Commands stand in reports as a shell reads them."""

import shlex

import pytest

from gates.command_line import shown


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("python", "-m", "pytest", "tests/test_a.py::test_b"), "python -m pytest tests/test_a.py::test_b"),
        (("python", "-c", "import pkg; pkg.run()"), "python -c 'import pkg; pkg.run()'"),
        (("python", "bench.py", "{out}", "--on={device}"), "python bench.py {out} '--on={device}'"),
        (("it's", "a b"), "'it'\"'\"'s' 'a b'"),
        ((), ""),
    ],
)
def test_words_are_quoted_that_a_shell_would_read_otherwise(words: tuple[str, ...], line: str) -> None:
    assert shown(words) == line
    assert shlex.split(line) == list(words)
