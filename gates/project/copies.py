"""Copies of a project: a revision laid out, and the work tree with all that its tests may need.

Nothing is written into the project's repository, no hook is run: a copy has its own, which borrows the objects.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gates.errors import EvidenceUnavailable
from gates.project.history import ask, run_git


def lay_out(repository: Path, commit: str, target: Path) -> None:
    """Lay out a commit of a repository, its submodules as empty folders."""
    _borrow(repository, target, "refs/tags")
    _ask(target, "checkout", "--quiet", "--force", "--detach", commit)


def give_history(repository: Path, copy: Path) -> None:
    """Give a copy of a whole work tree the history of its repository: branches, tags, HEAD and index, and no remote."""
    if not (repository / ".git").exists() or run_git(repository, "rev-parse", "--show-prefix").stdout.strip():
        return
    head = os.fsdecode(run_git(repository, "symbolic-ref", "--quiet", "HEAD").stdout).strip()
    _borrow(repository, copy, "refs", head.removeprefix("refs/heads/"))
    if not head:
        (copy / ".git" / "HEAD").write_text(_ask(repository, "rev-parse", "HEAD") + "\n", encoding="utf-8")
    run_git(copy, "update-index", "-z", "--index-info", given=run_git(repository, "ls-files", "--stage", "-z").stdout)


def _borrow(repository: Path, target: Path, refs: str, branch: str = "") -> None:
    """Make a repository that has the project's objects and some of its references, packed into one file."""
    places = ("--path-format=absolute", "--git-path", "objects", "--git-common-dir", "--show-object-format")
    objects, folder, form = _ask(repository, "rev-parse", *places).split("\n")
    common = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    on = [f"--initial-branch={branch}"] if branch else []
    _ask(target, "init", "--quiet", "--template=", f"--object-format={form}", *on, ".")
    own = target / ".git"
    (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    if (common / "shallow").is_file():
        (own / "shallow").write_bytes((common / "shallow").read_bytes())
    if (common / "lfs").is_dir():
        _ask(target, "config", "lfs.storage", str(common / "lfs"))
    told = _ask(repository, "for-each-ref", "--sort=refname", "--format=%(objectname) %(refname)", refs)
    (own / "packed-refs").write_text("".join(f"{line}\n" for line in told.splitlines()), encoding="utf-8")


def _ask(folder: Path, *words: str) -> str:
    return os.fsdecode(ask(folder, *words, why=f"`git {words[0]}` cannot lay out a copy"))


ENVIRONMENTS = {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", ".eggs"}
CACHES = {f".{tool}_cache" for tool in ("pytest", "ruff", "mypy", "import_linter")}
LEFT_OUT = frozenset({*ENVIRONMENTS, *CACHES, "__pycache__", ".hypothesis", ".ipynb_checkpoints", ".gates"})
ELSEWHERE = frozenset({"HOME", "TMPDIR"})  # what lies there is no part of a project
HEADS = {"result.json": b'"schema": "gates.result/', "proof.json": b'"schema": "gates.proof/'}
HEAD = 64
COMPILED = frozenset({".so", ".pyd", ".dylib", ".dll", ".pyc"})
SPARE_BYTES = 256 * 1024**2
LARGE_BYTES = 4 * 1024**2  # no settings are


def copy_project(root: Path, whole: Path, copies: int) -> Path:
    """Copy a project into a folder, return where in it; raise `EvidenceUnavailable` where so many copies do not fit."""
    needed = _bytes_of(root) * (copies + 1)
    whole.mkdir()
    free = shutil.disk_usage(whole).free
    if needed + SPARE_BYTES > free:
        room = f"{copies + 1} copies of {root} need {needed >> 20} MiB, and {whole.parent} has {free >> 20}"
        fix = "set TMPDIR to a folder with more room, or remove what the tests do not need"
        raise EvidenceUnavailable(f"{room}; {fix}")
    target = _place_for(root, whole)
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if not is_left_out(here / name)]
        there = target / here.relative_to(root)
        there.mkdir(exist_ok=True)
        own = (each for each in files if each != ".git")  # such a file names the repository of another work tree
        for name in [*own, *(each for each in folders if (here / each).is_symlink())]:
            with suppress(FileNotFoundError):
                _copy(here / name, there / name, root, target)
    with suppress(EvidenceUnavailable):  # a copy without its history says so by the tests that need it
        give_history(root, target)
    return target


def placed(copy: Path, path: str | Path) -> Path:
    """Return where a file may be written or removed in a copy: links that lead out of it are taken away."""
    target = copy / path
    for each in (*reversed(target.parents), target):
        leads_out = each.is_relative_to(copy) and not each.resolve().is_relative_to(copy.resolve())
        if each.is_symlink() and (leads_out or each == target):
            each.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _place_for(root: Path, folder: Path) -> Path:
    """Return where a copy is to lie: as deep as in its repository, what is above it copied, folders beside linked."""
    top = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
    inside = root.relative_to(top)
    for step in reversed(inside.parents):
        (folder / step).mkdir(parents=True, exist_ok=True)
        for each in (top / step).iterdir():
            is_beside = each.is_dir() and not is_left_out(each) and not root.is_relative_to(each)
            is_file = each.is_file() and each.name != ".git"
            if is_beside or (is_file and each.stat().st_size > LARGE_BYTES):
                (folder / step / each.name).symlink_to(each)
            elif is_file:
                shutil.copy2(each, folder / step / each.name)
    return folder / inside


def lend_generated(root: Path, target: Path) -> None:
    """Copy what git ignores and a build wrote (such as `_version.py`), no compiled code of today, to an older state."""
    done = run_git(root, "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", ".")
    for name in filter(None, os.fsdecode(done.stdout).split("\0")):
        source, there = root / name, target / name
        above = [folder for folder in source.parents if folder.is_relative_to(root)]
        if not (source.suffix in COMPILED or any(map(is_left_out, above)) or os.path.lexists(there)):
            there.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                _copy(source, there, root, target)


def relocated(env: Mapping[str, str], root: Path, copy: Path) -> dict[str, str]:
    """Return `PYTHONPATH` and the variables that name places of a project, each with the places of a copy."""
    found = {}
    for name, value in env.items():
        moved = os.pathsep.join(_moved(each, root, copy) for each in value.split(os.pathsep))
        if name == "PYTHONPATH" or (moved != value and name not in ELSEWHERE):
            found[name] = moved
    return found


def _moved(text: str, root: Path, copy: Path) -> str:
    for path in (Path(text), Path(os.path.realpath(text))):
        if Path(text).is_absolute() and path.is_relative_to(root):
            there = copy / path.relative_to(root)
            return str(there) if os.path.lexists(there) else text
    return text


def _copy(source: Path, target: Path, root: Path, copy: Path) -> None:
    if not source.is_symlink():
        if source.is_file():  # a pipe or a socket is no part of a project
            shutil.copy2(source, target)
        return
    to = source.readlink()
    if to.is_absolute() and to.is_relative_to(root):  # a copy is copied itself
        to = Path(os.path.relpath(copy / to.relative_to(root), target.parent))
    elif not to.is_absolute() and not Path(os.path.normpath(source.parent / to)).is_relative_to(root):
        to = Path(os.path.normpath(source.parent / to))
    target.symlink_to(to)


def _bytes_of(root: Path) -> int:
    total = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not is_left_out(Path(folder, name))]
        for name in files:
            with suppress(OSError):
                total += Path(folder, name).lstat().st_size
    return total


def is_left_out(folder: Path) -> bool:
    """Return whether no test can need a folder: history, environments, caches, earlier reports."""
    return folder.name in LEFT_OUT or (folder / "pyvenv.cfg").exists() or is_report(folder)


def is_report(folder: Path) -> bool:
    """Return whether a folder holds the reports of a task, wherever `reports` or `--out` put them, and no code."""
    for name, head in HEADS.items():
        with suppress(OSError), (folder / name).open("rb") as file:
            if head in file.read(HEAD):
                return not any(folder.glob("*.py"))
    return False
