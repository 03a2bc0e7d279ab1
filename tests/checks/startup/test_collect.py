"""Build and start-up, seen for real: what a build comes to, and how a module by itself imports or does not."""

from pathlib import Path

import pytest
from building import a_context, a_task, patient, written

from gates.check import EvidenceSet
from gates.checks.startup import Imported, Startup
from gates.model import Outcome

BACKEND = """\
import warnings
import zipfile


def build_wheel(folder, config_settings=None, metadata_directory=None):
    warnings.warn("the backend's own affair")
    with zipfile.ZipFile(f"{folder}/pkg-1-py3-none-any.whl", "w") as wheel:
        wheel.write("pkg/__init__.py")
        wheel.writestr("pkg-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: pkg\\nVersion: 1\\n")
        wheel.writestr("pkg-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return "pkg-1-py3-none-any.whl"
"""
ON_PYTHON_2 = "'no-such; python_version < \"3\"'"
BUILDABLE = f"""\
[build-system]
requires = [{ON_PYTHON_2}]
build-backend = "backend"
backend-path = ["."]
"""


def seen(tmp_path: Path, files: dict[str, str | bytes], **changes: object) -> Startup:
    root = written(tmp_path / "project", {"pkg/__init__.py": "", **files})
    return Startup.derive(a_task(**changes), a_context(root), EvidenceSet())


def endings(found: Startup) -> dict[str, Outcome]:
    return {module.name: module.ending for module in found.imports.modules}


def module(found: Startup, name: str) -> Imported:
    (one,) = [module for module in found.imports.modules if module.name == name]
    return one


def test_package_is_built_in_a_copy(tmp_path: Path) -> None:
    built = seen(tmp_path, {"pyproject.toml": BUILDABLE, "backend.py": BACKEND, "pkg/core.py": "x = 1\n"}).build
    assert (built.ending, built.wheel) == (Outcome.PASSED, "pkg-1-py3-none-any.whl")
    assert not list((tmp_path / "project").rglob("*.whl"))
    assert not (tmp_path / "project-evidence/startup/source").exists()


FLAT = """\
[build-system]
requires = []
build-backend = "setuptools.build_meta"
[project]
name = "pkg"
version = "1"
[tool.gates]
reports = "checked"
"""


@pytest.mark.parametrize("reports", [("checked/T1", "out"), ()], ids=["reports", "another folder"])
def test_what_earlier_runs_wrote_is_not_taken_for_a_package(reports: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("setuptools", reason="it is what looks for packages by itself")
    texts = {"result.json": '{\n "schema": "gates.result/1"\n}', "summary.md": "# Summary\n"}
    left = {f"{folder}/{name}": texts[name] for folder in reports for name in texts} or {"other/a.json": "{}"}
    (tmp_path / "project/reports").mkdir(parents=True)  # as while a run goes on
    built = seen(tmp_path, {"pyproject.toml": FLAT, "pkg/core.py": "x = 1\n", **left}).build
    assert built.ending is (Outcome.PASSED if reports else Outcome.FAILED), built.problem


def backend(code: str) -> dict[str, str | bytes]:
    """A backend that requires nothing, for which pip would start itself once more."""
    return {"pyproject.toml": BUILDABLE.replace(ON_PYTHON_2, ""), "backend.py": code}


ASKS = "def get_requires_for_build_wheel(*_):\n    return ['no-such-thing']"
FAILS = "def build_wheel(*_):\n    raise ValueError('no version')\n"
APART = f"import os\nassert 'build-env' in os.environ['PYTHONPATH']\n{BACKEND}"
OLD = '[build-system]\nrequires = ["pytest>=9999"]\nbuild-backend = "x"\n'
NOTHING: dict[str, str | bytes] = {"pyproject.toml": "[project]\nname = 'a'\n", "b/x.py": ""}
BUILDS: dict[str, tuple[dict[str, str | bytes], Outcome, str]] = {
    "nothing to build": (NOTHING, Outcome.NOT_APPLICABLE, "neither"),
    "a backend that asks for more": (backend(ASKS), Outcome.UNKNOWN, "not installed here: no-such-thing"),
    "a backend that is too old": ({"pyproject.toml": OLD}, Outcome.UNKNOWN, "not installed here: pytest>=9999"),
    "a backend that builds where pip puts one of its own choice": (backend(APART), Outcome.PASSED, ""),
    "a failing build": (backend(FAILS), Outcome.FAILED, "exit code 1: ValueError: no version"),
    "a file that is no TOML": ({"pyproject.toml": "["}, Outcome.UNKNOWN, "pyproject.toml"),
}


@pytest.mark.parametrize("case", BUILDS)
def test_build_that_is_not_seen_is_told_from_one_that_fails(case: str, tmp_path: Path) -> None:
    files, ending, problem = BUILDS[case]
    built = seen(tmp_path, files).build
    assert built.ending is ending
    assert problem in built.problem


IMPORTS: dict[str, str] = {
    "good": "import os\n",
    "typo": "x = undefined_name\n",
    "syntax": "def f(:\n",
    "absent": "import pkg.nowhere\n",
    "cycle_a": "from pkg.cycle_b import b\na = 1\n",
    "cycle_b": "from pkg.cycle_a import a\nb = 1\n",
    "optional": "import no_such_library_at_all\n",
    "wrapped": "try:\n    import no_such_library\nexcept ImportError as e:\n    raise ImportError('get it') from e\n",
    "windows": "import winreg\n",
    "from_windows": "from ctypes import windll\n",
    "refusing": "raise RuntimeError('only on Tuesdays')\n",
    "declining": "raise ImportError('only on servers')\n",
    "setting": "import os\nos.environ['NO_SUCH_SETTING']\n",
    "script": "import sys\nsys.exit(3)\n",
    "dying": "import os\nos._exit(7)\n",
}
BROKEN = {"typo", "syntax", "absent", "cycle_a", "cycle_b"}
ASIDE = {"refusing", "declining", "setting", "script"}
ASIDE |= {"optional", "wrapped", "windows", "from_windows"}


def test_modules_import_alone_or_say_why_not(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"pkg/{name}.py": text for name, text in IMPORTS.items()}
    found = seen(tmp_path, {**files, "pkg/__main__.py": "", "pkg/tests/test_x.py": "1/0\n"})
    by_name = {name.removeprefix("pkg."): ending for name, ending in endings(found).items()}
    assert {name for name, ending in by_name.items() if ending is Outcome.FAILED} == BROKEN
    assert {name for name, ending in by_name.items() if ending is Outcome.UNKNOWN} == ASIDE | {"dying"}
    assert found.imports.problem == ""
    assert str(module(found, "pkg.typo").location) == "pkg/typo.py:1"
    assert module(found, "pkg.optional").why == "was not imported: it needs no_such_library_at_all, which is not here"
    assert found.aside == ("pkg/__main__.py: it is run, not imported", "pkg/tests/test_x.py: it belongs to the tests")


def test_module_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"pkg": Outcome.PASSED, "pkg.slow": Outcome.UNKNOWN, "pkg.zebra": Outcome.PASSED}

    def looked(limit_s: float) -> dict[str, Outcome]:
        monkeypatch.setattr("gates.checks.startup.MODULE_LIMIT_S", limit_s)
        return endings(seen(tmp_path, {"pkg/slow.py": "import time\ntime.sleep(600)\n", "pkg/zebra.py": ""}))

    assert patient(1, looked, lambda found: found == expected) == expected


def test_src_layout_and_single_modules_are_found(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"src/lib/__init__.py": "", "src/lib/core.py": "import lib\n", "one.py": "x = 1\n"}
    files |= {"scripts/run.py": "raise SystemExit\n", "pkg/bad-name.py": ""}
    found = seen(tmp_path, files, implementation=["src/lib", "one.py", "scripts", "pkg"])
    assert endings(found) == dict.fromkeys(["lib", "lib.core", "one", "pkg"], Outcome.PASSED)
    assert {text.partition(":")[0] for text in found.aside} == {"scripts/run.py", "pkg/bad-name.py"}
