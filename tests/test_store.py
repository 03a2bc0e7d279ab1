"""Reports on disk: whole or not at all, and nothing of an earlier run is damaged or left beside a new one."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
from building import written

from gates import store
from gates.errors import GatesError, UsageError

OLD = {"summary.md": "old", "result.json": "old", "evidence/raw.txt": "old"}


def a_report_folder(tmp_path: Path) -> Path:
    return written(tmp_path / "out", OLD)


def raw(tmp_path: Path, name: str = "raw.txt") -> Path:
    return written(tmp_path / "evidence", {name: "new"})


def contents(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}


NEW = {"summary.md": "new", "result.json": "new"}


def test_first_report_is_published(tmp_path: Path) -> None:
    assert store.last(tmp_path) is None
    out = tmp_path / "deep" / "out"
    store.prepare(out)
    assert contents(out) == {}
    for there in (out, tmp_path / "gone by then"):
        store.publish(there, NEW, raw(tmp_path))
        assert contents(there) == {**NEW, "evidence/raw.txt": "new"}


def test_new_report_takes_the_place_of_the_old_and_files_of_the_user_stay(tmp_path: Path) -> None:
    out = written(a_report_folder(tmp_path), {"notes.txt": "mine"})
    store.publish(out, NEW, raw(tmp_path, "other.txt"))
    assert contents(out) == {**NEW, "evidence/other.txt": "new", "notes.txt": "mine"}
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_place_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path, where: str) -> None:
    written(tmp_path, {"file": "mine"})
    with pytest.raises(UsageError, match=r"cannot be written into .*; choose a folder with --out$"):
        store.prepare(tmp_path / where)
    assert contents(tmp_path) == {"file": "mine"}


def test_evidence_that_was_a_link_is_replaced(tmp_path: Path) -> None:
    out = a_report_folder(tmp_path)
    (out / "evidence").rename(tmp_path / "elsewhere")
    (out / "evidence").symlink_to(tmp_path / "elsewhere")
    store.publish(out, NEW, raw(tmp_path))
    assert contents(out) == {**NEW, "evidence/raw.txt": "new"}
    assert contents(tmp_path / "elsewhere") == {"raw.txt": "old"}


def test_what_cannot_be_written_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GatesError, match="cannot be written"):
        store.publish(written(tmp_path, {"gone": "x"}) / "gone", NEW, raw(tmp_path))
    monkeypatch.setattr(shutil, "copytree", Mock(side_effect=shutil.Error([("a", "b", "no space")] * 2)))
    with pytest.raises(GatesError, match=r"into '[^']*': no space$"):
        store.publish(tmp_path, NEW, raw(tmp_path, "more"))


@pytest.mark.parametrize("bad", [{"no/such/folder.md": "x"}, {"summary.md": "\ud800"}], ids=["place", "text"])
def test_file_that_cannot_be_written_leaves_the_old_report(tmp_path: Path, bad: dict[str, str]) -> None:
    out = a_report_folder(tmp_path)
    with pytest.raises((GatesError, UnicodeEncodeError)):
        store.publish(out, {**NEW, **bad}, raw(tmp_path))
    assert contents(out) == OLD


def test_evidence_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    ((folder := raw(tmp_path)) / "link").symlink_to(written(tmp_path, {"secret": "s"}) / "secret")
    store.publish(out := a_report_folder(tmp_path), NEW, folder)
    assert "evidence/link" not in contents(out)


@pytest.mark.parametrize("text", ["", "{}", "[", '{"schema": "gates.result/0"}', "\ud7ff"])
def test_last_that_is_not_ours_is_refused(tmp_path: Path, text: str) -> None:
    written(tmp_path, {"result.json": text})
    with pytest.raises(UsageError, match="not a result of this version"):
        store.last(tmp_path)
