"""The configuration: flag over environment over file over default; what is wrong has its place."""

from pathlib import Path

import pytest
from building import LIGHT, a_project, gates, result, written

from gates import config
from gates.config import Settings
from gates.errors import UsageError

SLOW = LIGHT % "double" + 'entry_points: [{run: [python, -c, "import time; time.sleep(60)"]}]\n'


def refused(tmp_path: Path, text: str | bytes) -> str:
    written(tmp_path, {"pyproject.toml": text})
    with pytest.raises(UsageError) as caught:
        config.load(tmp_path)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    assert config.load(tmp_path) == Settings()
    assert Settings().timeout_s == 900


def test_file_is_read(tmp_path: Path) -> None:
    text = "[tool.gates]\ntasks = 't'\nreports = 'r'\ntimeout_s = 7\nkeep_going = true\n"
    written(tmp_path, {"pyproject.toml": text})
    assert config.load(tmp_path) == Settings(tasks="t", reports="r", timeout_s=7, keep_going=True)


def test_unknown_key_has_its_place_and_a_suggestion(tmp_path: Path) -> None:
    assert refused(tmp_path, "[tool.other]\ntimeot_s = 1\n\n[tool.gates]\ntasks = 't'\n  timeot_s = 3\n") == (
        "pyproject.toml:6:3: unknown key 'timeot_s' in [tool.gates]; did you mean 'timeout_s'?"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [("timeout_s = 0", "timeout_s: expected greater than 0"), ("timeout_s = -1", "timeout_s: expected"),
     ("timeout_s = nan", "timeout_s: expected"), ("timeout_s = inf", "timeout_s: expected a finite number"),
     ("timeout_s = 'soon'", "timeout_s: expected a valid number"), ("tasks = 3", "tasks: expected a valid string"),
     ("keep_going = 'maybe'", "keep_going: expected a valid boolean")],
)  # fmt: skip
def test_bad_value_has_its_place(tmp_path: Path, line: str, said: str) -> None:
    assert refused(tmp_path, f"[tool.gates]\n{line}\n").startswith(f"pyproject.toml:2:1: {said}")


def test_table_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "gates" in refused(tmp_path, "[tool]\ngates = 3\n")


def test_bad_toml_has_its_place(tmp_path: Path) -> None:
    assert refused(tmp_path, "[tool.gates]\ntasks = = 3\n").startswith("pyproject.toml:2:9: not valid TOML: ")
    assert refused(tmp_path, b"x = '\xff'\n").startswith("pyproject.toml:1:1: cannot be read")


def test_several_bad_keys_are_said_at_once(tmp_path: Path) -> None:
    assert len(refused(tmp_path, "[tool.gates]\ntimeout_s = 0\ntsaks = 't'\n").splitlines()) == 2


def test_nearest_file_with_a_table_upwards_is_the_root(tmp_path: Path) -> None:
    written(tmp_path, {"pyproject.toml": "[tool.gates]\n", "a/pyproject.toml": "[project]\n", "a/b/c/x": ""})
    assert config.find_root(tmp_path / "a" / "b" / "c") == tmp_path
    written(tmp_path, {"a/pyproject.toml": "[tool.gates]\n"})
    assert config.find_root(tmp_path / "a" / "b" / "c") == tmp_path / "a"
    written(tmp_path, {"a/b/.git": "gitdir: elsewhere\n", "a/b/pyproject.toml": ""})
    assert config.find_root(tmp_path / "a" / "b" / "c") == tmp_path / "a" / "b", "the repository's own, none above it"


def limit_used(project: Path, *args: str, **env: str) -> str:
    assert gates(project, "run", "T1", *args, env=env).code == 3
    (command,) = (each for each in result(project)["commands"] if each["purpose"] == "entry point")
    return str(command["ended"])


def test_flag_goes_before_environment_before_file(tmp_path: Path) -> None:
    project = a_project(tmp_path, {"tasks/T1.yaml": SLOW, "pyproject.toml": "[tool.gates]\ntimeout_s = 0.4\n"})
    assert limit_used(project) == "stopped at the time limit of 0.4 s"
    assert limit_used(project, GATES_RUN_TIMEOUT="0.3") == "stopped at the time limit of 0.3 s"
    assert limit_used(project, "--timeout", "0.2", GATES_RUN_TIMEOUT="0.3") == "stopped at the time limit of 0.2 s"


def test_bad_environment_is_wrong_usage(tmp_path: Path) -> None:
    ended = gates(a_project(tmp_path), "run", "T1", env={"GATES_RUN_TIMEOUT": "soon"})
    assert (ended.code, "soon" in ended.err) == (2, True)


def test_folders_of_the_file_are_used_from_below(tmp_path: Path) -> None:
    project = a_project(
        tmp_path,
        {"pyproject.toml": "[tool.gates]\ntasks = 'asked'\nreports = 'said'\n", "asked/T1.yaml": LIGHT % "double"},
    )
    assert gates(project / "pkg", "run", "T1").code == 3
    assert (project / "said/T1/result.json").is_file()
    assert not (project / "reports").exists()
    assert not (project / "pkg/said").exists()


def test_interpreter_is_a_path_that_holds_in_every_folder_and_must_be_there(tmp_path: Path) -> None:
    written(tmp_path, {"env/bin/python": ""})
    assert config.interpreter("env/bin/python", tmp_path) == str(tmp_path / "env/bin/python")
    assert config.interpreter("sh", tmp_path) == "sh"
    assert config.interpreter(None, tmp_path) is None
    with pytest.raises(UsageError, match="no interpreter 'env/python': there is no file"):
        config.interpreter("env/python", tmp_path)
    with pytest.raises(UsageError, match="no program of that name is on the PATH"):
        config.interpreter("python-of-nobody", tmp_path)
