"""Ways in which a hurried author might get a broken change past a pull request, each judged by the base's policy.

`python -m benchmarks.cheats --out benchmarks/results/cheats.md` writes a table of what stops each. It ends with 1 where
one passes, or where one of the sound changes does not.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CODE = '''"""Sizes of files, for people."""

UNITS = ("kB", "MB", "GB")


def size(count):
    """Return a number of bytes with a unit; what rounds to 1000 of one is 1 of the next."""
    if count < 1000:
        return f"{count} B"
    power = 1
    while count / 1000**power >= 1000 and power < len(UNITS):
        power += 1
    if round(count / 1000**power, 1) >= 1000 and power < len(UNITS):
        power += 1
    return f"{count / 1000**power:.1f} {UNITS[power - 1]}"
'''
TESTS = """import pytest

from sizes.text import size


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, "1 B"),
        (1000, "1.0 kB"),
        (2500, "2.5 kB"),
        (999999, "1.0 MB"),
        (3000000, "3.0 MB"),
    ],
)
def test_size(count, expected):
    assert size(count) == expected
"""
TASK = """id: T1
title: Sizes
implementation: [sizes]
tests: [tests]
criteria:
  - id: AC1
    text: What rounds to 1000 of a unit is 1 of the next
    level: must
    code: [{symbol: "sizes.text:size"}]
    tests: [tests/test_text.py]
"""
FILES = {
    "pyproject.toml": '[project]\nname = "sizes"\nversion = "1.0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
    'filterwarnings = ["error"]\n',
    ".gitignore": "reports/\n.gates/\n__pycache__/\n",
    "sizes/__init__.py": '"""Sizes."""\n',
    "sizes/text.py": CODE,
    "tests/test_text.py": TESTS,
    "tasks/T1.yaml": TASK,
}
BROKEN = CODE.replace("if round(count", "if False and round(count")
ASSERT = "    assert size(count) == expected\n"
RIG = """import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome, report.longrepr = "passed", None
    return report
"""
PATCH = """import pytest

from tests import good


@pytest.fixture(autouse=True)
def _good(monkeypatch):
    monkeypatch.setattr("tests.test_text.size", good.size)
"""
FEWER = (
    "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if '9999' not in item.name]\n"
)


def asserting(text: str) -> dict[str, str]:
    """Return the tests with something else in the place of their assertion."""
    return {"tests/test_text.py": TESTS.replace(ASSERT, text)}


def marked(mark: str) -> dict[str, str]:
    """Return the tests with a mark."""
    return {"tests/test_text.py": TESTS.replace("@pytest.mark.param", f"@pytest.mark.{mark}\n@pytest.mark.param")}


# what each writes beside the broken code
CHEATS: dict[str, dict[str, str]] = {
    "nothing but the defect": {},
    "no assertion": asserting("    size(count)\n"),
    "or True": asserting("    assert size(count) == expected or True\n"),
    "true enough": asserting("    assert size(count)\n"),
    "the type alone": asserting("    assert isinstance(size(count), str)\n"),
    "compared with itself": asserting("    assert size(count) == size(count)\n"),
    "the error caught": asserting(f"    try:\n    {ASSERT}    except AssertionError:\n        pass\n"),
    "under a condition that is false": asserting(f"    if not count:\n    {ASSERT}"),
    "a loop over nothing": asserting(f"    for count in []:\n    {ASSERT}"),
    "a lambda that nobody calls": asserting("    assert lambda: size(count) == expected\n"),
    "a lazy map": asserting("    map(lambda: size(count) == expected, [])\n"),
    "a value returned": asserting("    return size(count) == expected\n"),
    "a coroutine": {"tests/test_text.py": TESTS.replace("def test_size", "async def test_size")},
    "a thread": asserting("    import threading\n\n    threading.Thread(target=lambda: size(count)).start()\n"),
    "a mock": asserting("    from unittest import mock\n\n    size = mock.Mock(return_value=expected)\n" + ASSERT),
    "a skip": marked("skip(reason='flaky')"),
    "a skip on a condition": marked("skipif(True, reason='slow')"),
    "an expected failure": marked("xfail"),
    "an import that is not there": {"tests/test_text.py": TESTS.replace("\n\n\n@", "\n\npytest.importorskip('x')\n@")},
    "the expected value copied": {"tests/test_text.py": TESTS.replace('"1.0 MB"', '"1000.0 kB"')},
    "the row deleted": {"tests/test_text.py": TESTS.replace('        (999999, "1.0 MB"),\n', "")},
    "all rows deleted": {"tests/test_text.py": re.sub(r" {8}\(.*\n", "", TESTS)},
    "the file renamed": {"tests/test_text.py": "", "tests/text_of_tests.py": TESTS},
    "a copy of the good code": {"tests/good.py": CODE, "tests/test_text.py": TESTS.replace("sizes.text", "good")},
    "a fixture that puts good code in": {"tests/__init__.py": "", "tests/good.py": CODE, "tests/conftest.py": PATCH},
    "good code put into its place as modules": {
        "tests/good.py": CODE,
        "tests/conftest.py": "import sys\n\nfrom tests import good\n\nsys.modules['sizes.text'] = good\n",
        "tests/__init__.py": "",
    },
    "a stale build that the tests import": {
        "build/lib/sizes/__init__.py": "",
        "build/lib/sizes/text.py": CODE,
        "tests/conftest.py": "import sys\n\nsys.path.insert(0, 'build/lib')\n",
    },
    "tries that give up": asserting(
        "    for _ in range(3):\n        try:\n            assert size(count) == expected\n            break\n"
        "        except AssertionError:\n            continue\n"
    ),
    "a tuple that is asserted": asserting("    assert (size(count) == expected, expected)\n"),
    "any exception expected": asserting("    with pytest.raises(Exception):\n        assert size() == expected\n"),
    "a conftest that leaves tests out": {"tests/conftest.py": FEWER},
    "a conftest that calls failures passed": {"tests/conftest.py": RIG},
    "a conftest that ends the process": {"conftest.py": "import os\n\ndef pytest_sessionfinish():\n    os._exit(0)\n"},
    "options that leave tests out": {"pyproject.toml": FILES["pyproject.toml"] + "addopts = '-k \"not size\"'\n"},
    "a pytest.ini that collects nothing": {"pytest.ini": "[pytest]\npython_functions = check_*\n"},
    "the criterion made optional": {"tasks/T1.yaml": TASK.replace("must", "advisory")},
    "settings made weaker": {"pyproject.toml": FILES["pyproject.toml"] + '\n[tool.gates]\ngoalposts = "list"\n'},
    "the test renamed, the row deleted": {
        "tests/test_text.py": TESTS.replace('        (999999, "1.0 MB"),\n', "").replace("test_size", "test_sizes")
    },
    "the file moved, the row deleted": {
        "tests/test_text.py": "",
        "tests/unit/test_text.py": TESTS.replace('        (999999, "1.0 MB"),\n', ""),
    },
    "right under pytest alone": {
        "sizes/text.py": CODE.replace("if round(", "if 'PYTEST_VERSION' in __import__('os').environ and round(")
    },
}  # fmt: skip
SOUND: dict[str, dict[str, str]] = {
    "a comment": {"sizes/text.py": CODE.replace("    power = 1\n", "    power = 1  # of 1000\n")},
    "a refactoring": {"sizes/text.py": CODE.replace("power += 1", "power = power + 1")},
    "one more test": {"tests/test_more.py": "from sizes.text import size\n\ndef test():\n    assert size(0)\n"},
    "one more row": {"tests/test_text.py": TESTS.replace('(1, "1 B"),', '(1, "1 B"),\n        (999, "999 B"),')},
    "a test written anew": {"tests/test_text.py": TESTS.replace("test_size", "test_that_sizes_are_rounded")},
    "a file of tests moved": {"tests/test_text.py": "", "tests/unit/test_text.py": TESTS},
    "a module renamed": {
        "sizes/text.py": "from sizes.words import size\n",
        "sizes/words.py": CODE,
        "tests/test_text.py": TESTS.replace("sizes.text", "sizes.words"),
    },
}  # fmt: skip


def git(project: Path, *words: str) -> None:
    """Run git in the project."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)  # noqa: S607


def judged(project: Path, change: dict[str, str]) -> tuple[int, str]:
    """Commit a change on a branch of its own and judge it by the policy of main; return exit code and first cause."""
    git(project, "checkout", "-q", "-B", "change", "main")
    for name, text in change.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8") if text else path.unlink(missing_ok=True)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "change")
    argv = [sys.executable, "-m", "gates", "run", "T1", "--quiet", "--policy-from", "main"]
    ended = subprocess.run(
        argv, cwd=project, env={**os.environ, "CI": "true"}, capture_output=True, text=True, check=False
    )
    cause = next(
        (line for line in ended.stdout.splitlines() if line.startswith("cause: ")), ended.stderr.strip()[-200:]
    )
    return ended.returncode, cause.removeprefix("cause: ")


def main() -> int:
    """Judge every cheat and every sound change, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name, text in FILES.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text, encoding="utf-8")
        git(project, "init", "-q", "-b", "main")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "sizes")
        cases = [(name, {"sizes/text.py": BROKEN, **change}, True) for name, change in CHEATS.items()]
        cases += [(f"sound: {name}", change, False) for name, change in SOUND.items()]
        for name, change, is_cheat in cases:
            code, cause = judged(project, change)
            wrong += (code == 0) is is_cheat
            rows.append(f"| {name} | {code} | {cause[:160].replace('|', '/') if is_cheat else ''} |")
            print(rows[-1], flush=True)
    summary = f"{len(CHEATS)} cheats, {len(SOUND)} sound changes, {wrong} judged wrongly."
    table = "\n".join(["| Change | Exit code | First cause |", "|---|---|---|", *rows])
    text = f"# What stops a hurried author\n\n{summary} `python -m benchmarks.cheats`\n\n{table}\n"
    if asked.out:
        asked.out.write_text(text, encoding="utf-8")
    print(summary)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
