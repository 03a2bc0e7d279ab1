"""Commands stand in reports as a shell reads them."""

import shlex

import pytest

from gates.words import in_order, in_shell


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


def test_names_stand_as_people_count_them() -> None:
    assert in_order({"AC11", "AC2", "B", "AC1"}) == ["AC1", "AC2", "AC11", "B"]
