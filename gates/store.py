"""The reports on disk: published whole or not at all, and read back."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from pydantic import ValidationError

from gates.child.guardian import stop_if_interrupted, uninterrupted
from gates.errors import GatesError, UsageError
from gates.report import Report

RESULT = "result.json"
PREVIOUS = "previous.json"  # the result of the run before
EVIDENCE = "evidence"
STAGING = ".gates-"
OLD = "old"


def prepare(out: Path) -> None:
    """Make sure that reports can be written into a folder, before anything is run; raise `UsageError` if not.

    What a run that was killed while it published left there is taken back.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for staging in out.glob(f"{STAGING}*-*"):
            _heal(out, staging)
        with tempfile.NamedTemporaryFile(dir=out, prefix=".gates-"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"reports cannot be written into {str(out)!r}: {reason}; choose a folder with --out"
        ) from error


def publish(out: Path, files: dict[str, str], evidence: Path, *, obsolete: Iterable[str] = ()) -> None:
    """Put a run's files and raw evidence into a folder, in place of those of the run before.

    Everything is written beside its place first and then renamed, `result.json` last; where one rename fails, those
    before it are taken back. Ctrl-C is held back meanwhile. `obsolete` names pages that must not outlive the last run.
    """
    stop_if_interrupted()
    placed: list[str] = []
    with uninterrupted(), _no_disk(out, "reports", "; the earlier ones are as they were"):
        staging = Path(tempfile.mkdtemp(dir=out, prefix=f"{STAGING}{os.getpid()}-"))
        try:
            shutil.copytree(evidence, staging / EVIDENCE, ignore=_links)
            for name, text in files.items():
                with (staging / name).open("w", encoding="utf-8", newline="\n") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
            (staging / OLD).mkdir()
            for name in (*sorted(set(obsolete) - files.keys()), EVIDENCE, *sorted(files, key=lambda n: n == RESULT)):
                if (out / name).exists():
                    (out / name).rename(staging / OLD / name)
                if name in {EVIDENCE, *files}:
                    (staging / name).rename(out / name)
                    placed.append(name)
        except OSError:
            _put_back(out, staging, placed)
            raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _no_disk(where: Path, what: str, rest: str = "") -> Iterator[None]:
    """Turn what the disk refuses into one clear line."""
    try:
        yield
    except OSError as error:
        raise GatesError(f"{what} cannot be written into {str(where)!r}: {error.strerror or error}{rest}") from error


def write(files: Mapping[Path, bytes], what: str, where: Path) -> None:
    """Put files into their places in their order, once all of them are written beside these."""
    stop_if_interrupted()
    staged = {path.with_name(f"{STAGING}{os.getpid()}-{path.name}"): path for path in files}
    with uninterrupted(), _no_disk(where, what):
        try:
            for beside, path in staged.items():
                beside.write_bytes(files[path])
            for beside, path in staged.items():
                beside.replace(path)
        finally:
            for beside in staged:
                with suppress(OSError):
                    beside.unlink(missing_ok=True)


def write_page(path: Path | None, text: str) -> bool:
    """Write a page where one was asked for; raise `UsageError` where that cannot be."""
    if path is None:
        return False
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be written: {error.strerror or error}; choose another file") from error
    return True


def _heal(out: Path, staging: Path) -> None:
    """Remove the staging folder of a run that is dead; where it had not moved all, put the earlier reports back."""
    pid = staging.name.removeprefix(STAGING).split("-")[0]
    if not pid.isdecimal() or psutil.pid_exists(int(pid)):
        return
    if (staging / RESULT).exists():  # it goes last: some of the new files may be in place, not all
        _put_back(out, staging)
    shutil.rmtree(staging, ignore_errors=True)


def _put_back(out: Path, staging: Path, placed: Iterable[str] = ()) -> None:
    """Put the earlier reports back in the place of new ones."""
    old = [*(staging / OLD).iterdir()] if (staging / OLD).is_dir() else []
    for new in [out / name for name in (*placed, *(each.name for each in old))]:
        shutil.rmtree(new) if new.is_dir() else new.unlink(missing_ok=True)
    for each in old:
        each.rename(out / each.name)


def last(out: Path, name: str = RESULT) -> Report | None:
    """Return the report that a folder holds, or `None` where there is none; raise `UsageError` for one not readable."""
    path = out / name
    if not path.is_file():
        return None
    try:
        return Report.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{path}: not a result of this version ({reason}); run `gates run` again") from error


def _links(folder: str, names: list[str]) -> set[str]:
    """Name what is neither a plain file nor a folder: a link could bring in anything, a pipe has no end."""
    paths = {name: Path(folder, name) for name in names}
    return {name for name, path in paths.items() if path.is_symlink() or not (path.is_file() or path.is_dir())}
