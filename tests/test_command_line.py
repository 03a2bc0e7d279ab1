"""Commands stand in reports as a shell reads them."""

import shlex

import pytest

from gates.words import in_shell


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
    assert in_shell(words) == line
    assert shlex.split(line) == list(words)
