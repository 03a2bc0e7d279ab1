"""The reports on disk: published whole or not at all, and read back."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic_core import from_json

from gates.child.guardian import stop_if_interrupted, uninterrupted
from gates.errors import GatesError, UsageError
from gates.report import Report

RESULT = "result.json"
PREVIOUS = "previous.json"  # the result of the run before
EVIDENCE, STAGING = "evidence", ".gates-"


def prepare(out: Path) -> None:
    """Make sure that reports can be written into a folder, before anything is run; raise `UsageError` if not."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out, prefix=STAGING):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"reports cannot be written into {str(out)!r}: {why}; choose a folder with --out") from error


def publish(out: Path, files: dict[str, str], evidence: Path, *, obsolete: Iterable[str] = ()) -> None:
    """Put a run's files and evidence in the place of those before, `result.json` last; remove `obsolete` pages."""
    names = [EVIDENCE, *sorted(files, key=lambda name: name == RESULT)]
    with _staged([out / name for name in names], "reports", out) as staged:
        shutil.copytree(evidence, staged[out / EVIDENCE], ignore=_links)
        for name, text in files.items():
            staged[out / name].write_text(text, encoding="utf-8", newline="\n")
        for name in {*obsolete} - files.keys():
            (out / name).unlink(missing_ok=True)


def write(files: Mapping[Path, bytes], what: str, where: Path) -> None:
    """Put files into their places in their order, once all of them are written beside these."""
    with _staged(files, what, where) as staged:
        for path, content in files.items():
            staged[path].write_bytes(content)


@contextmanager
def _staged(paths: Iterable[Path], what: str, where: Path) -> Iterator[dict[Path, Path]]:
    """Yield a place beside each path, and put what was written there into its place, or say in one line why not."""
    stop_if_interrupted()
    staged = {path: path.with_name(f"{STAGING}{os.getpid()}-{path.name}") for path in paths}
    with uninterrupted():
        try:
            yield staged
            for path, beside in staged.items():
                if path.is_dir():
                    path.rename(f"{beside}-old")
                beside.replace(path)
        except OSError as error:
            reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error  # a whole list
            raise GatesError(f"{what} cannot be written into {str(where)!r}: {reason}") from error
        finally:
            for left in [left for path in staged for left in path.parent.glob(f"{STAGING}{os.getpid()}-*")]:
                shutil.rmtree(left, ignore_errors=True)
                with suppress(OSError):
                    left.unlink(missing_ok=True)


def write_page(path: Path, text: str) -> None:
    """Write a page where it was asked for; raise `UsageError` where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be written: {error.strerror or error}; choose another file") from error


def last(out: Path, name: str = RESULT, *, bare: bool = False) -> Report | None:
    """Return the report that a folder holds, or `None` where there is none; raise `UsageError` for one not readable."""
    if not (path := out / name).is_file():
        return None
    try:
        told = from_json(path.read_bytes())
        for criterion in told["criteria"] if bare else ():  # of which each may have tens of thousands
            del criterion["tests"]
        return Report.model_validate(told)
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{path}: not a result of this version ({reason}); run `gates run` again") from error


def _links(folder: str, names: list[str]) -> set[str]:
    """Name what is neither a plain file nor a folder: a link could bring in anything, a pipe has no end."""
    paths = {name: Path(folder, name) for name in names}
    return {name for name, path in paths.items() if path.is_symlink() or not (path.is_file() or path.is_dir())}
