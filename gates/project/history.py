"""The project's history, and its work tree beside the base, read through git's plumbing only.

Nothing that a repository configures is run: files are read as blobs, and nothing is checked out or fetched.
"""

import hashlib
import io
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple, Self

from gates.errors import Absent, EvidenceUnavailable
from gates.project.files import files_of, is_under
from gates.words import printable

TIMEOUT_S = 300
ASKED_ONCE = frozenset({"rev-parse", "for-each-ref", "merge-base", "remote", "symbolic-ref"})
MAX_BLOB_BYTES, MAX_TOTAL_BYTES = 4 * 1024 * 1024, 256 * 1024 * 1024
FILE_MODES = {b"100644", b"100755", b"100664"}
LINK_MODE = b"120000"
PARTIAL = (
    "the clone lacks files of the history, which are not fetched here; fetch them "
    "(`git fetch --refetch --no-filter`, or no filter in the checkout)"
)
SWITCHES = ("--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs")
CONFIG = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "protocol.allow=never")
PLAIN = ("gc.auto=0", "core.autocrlf=input", "advice.detachedHead=false")
SAFE = (*SWITCHES, *(word for setting in (*CONFIG, *PLAIN) for word in ("-c", setting)))


NOWHERE = "the project is not in a git repository"
OWNER = (
    "git does not read the repository, because another user owns it; if you trust it, run "
    "`git config --global --add safe.directory` with its folder"
)


class Blob(NamedTuple):
    """A file of a revision: its object, and whether it is a plain file, or a link; a submodule is neither."""

    oid: str
    plain: bool
    link: bool = False


class History:
    """The repository that a project lies in, as seen from the project's folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        if not any((each / ".git").exists() for each in (root, *root.parents)):
            raise Absent(NOWHERE)
        told = ask(root, "rev-parse", "--is-inside-work-tree", "--show-prefix", why=NOWHERE)
        inside, _, prefix = told.partition(b"\n")
        if inside != b"true":
            raise EvidenceUnavailable("the project is not in the work tree of a git repository")
        self.prefix = os.fsdecode(prefix)  # the project's folder in it: nothing for its top, or it ends in a slash

    def commit(self, revision: str) -> str | None:
        """Return the commit that a name stands for, or `None` where there is none."""
        if revision.startswith("-") or "\0" in revision or not revision.strip():
            return None
        done = run_git(self._root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return done.stdout.decode().strip() or None if done.returncode == 0 else None

    def tell(self, *words: str) -> list[str]:
        """Return the lines that git says, or an empty one."""
        return run_git(self._root, *words).stdout.decode(errors="replace").splitlines() or [""]

    @cached_property
    def top(self) -> Path:
        """Return the folder that the repository's paths begin at."""
        return self._root.resolve().joinpath(*[".."] * self.prefix.count("/")).resolve()

    def tree(self, commit: str) -> dict[str, Blob]:
        """Return every file of a commit under the project's folder, by path relative to it."""
        whole = self.whole_tree(commit).items()
        return {path.removeprefix(self.prefix): blob for path, blob in whole if path.startswith(self.prefix)}

    def whole_tree(self, commit: str) -> dict[str, Blob]:
        """Return every file of a commit, by its path in the repository."""
        return _tree(self._root, commit)

    def differing(self, commit: str) -> list[str]:
        """Return the files of a commit that are others in the work tree, or gone, as git's own filters see them."""
        asked = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--relative", commit)
        told = ask(self._root, *asked, why=f"the work tree cannot be compared with {commit[:12]}")
        return [path for path in os.fsdecode(told).split("\0") if path]

    def read(self, blobs: Iterable[Blob]) -> dict[str, bytes]:
        """Return the contents of blobs by their object; one that is too large or is not there is left out."""
        wanted = sorted({blob.oid for blob in blobs if blob.plain or blob.link})
        sizes = self._batch("--batch-check", wanted) if wanted else b""
        small, total = [], 0
        for line in sizes.splitlines():
            words = line.decode(errors="replace").split()
            if words[1:] == ["missing"]:
                raise EvidenceUnavailable(PARTIAL)
            if len(words) == 3 and words[1] == "blob" and int(words[2]) <= MAX_BLOB_BYTES:
                total += int(words[2])
                small += [words[0]] if total <= MAX_TOTAL_BYTES else []
        return dict(_contents(self._batch("--batch", small))) if small else {}

    def _batch(self, form: str, oids: list[str]) -> bytes:
        done = run_git(self._root, "cat-file", form, given="".join(f"{oid}\n" for oid in oids).encode())
        if done.returncode != 0:
            why = f"git cannot read files of the history: {_last_line(done.stderr)}"
            raise EvidenceUnavailable(PARTIAL if b"promisor" in done.stderr else why)
        return done.stdout


@lru_cache(maxsize=8)
def _tree(root: Path, commit: str) -> dict[str, Blob]:
    rows = ask(root, "ls-tree", "-r", "-z", "--full-tree", commit, why=f"the files of {commit[:12]} cannot be listed")
    found = {}
    for row in rows.split(b"\0"):
        head, tab, path = row.partition(b"\t")
        if tab:
            mode, _, oid = head.split(b" ")[:3]
            found[os.fsdecode(path)] = Blob(oid.decode(), plain=mode in FILE_MODES, link=mode == LINK_MODE)
    return found


def ask(root: Path, *words: str, why: str) -> bytes:
    """Return what git says, without its last line's end; raise `EvidenceUnavailable` where it says no."""
    if (done := run_git(root, *words)).returncode != 0:
        said = f"{why} ({_last_line(done.stderr)})"
        raise EvidenceUnavailable(OWNER if b"dubious ownership" in done.stderr else said)
    return done.stdout.strip(b"\n")


_answers: ContextVar[dict[object, subprocess.CompletedProcess[bytes]] | None] = ContextVar("_answers", default=None)


@contextmanager
def asked_once() -> Iterator[None]:
    """Let git answer each question about names once: a run speaks of one commit, whatever moves meanwhile."""
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def run_git(folder: Path, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, kept from all that the repository configures; raise `EvidenceUnavailable` if it cannot."""
    answers, asked = _answers.get(), (folder, *words)
    if answers is not None and asked in answers:
        return answers[asked]
    try:
        argv, env = ["git", *SAFE, *words], environment()
        done = subprocess.run(argv, cwd=folder, env=env, input=given, capture_output=True, timeout=TIMEOUT_S)  # noqa: PLW1510  # its code is looked at
    except FileNotFoundError as error:
        raise EvidenceUnavailable("there is no git on this machine, so no earlier state was seen") from error
    except subprocess.TimeoutExpired as error:
        raise EvidenceUnavailable(f"`git {words[0]}` did not end within {TIMEOUT_S} s") from error
    except OSError as error:
        raise EvidenceUnavailable(f"git cannot be run: {error.strerror or error}") from error
    if answers is not None and words[0] in ASKED_ONCE:
        answers[asked] = done
    return done


def environment() -> Mapping[str, str]:
    """Return our environment without what sends git elsewhere, and with what keeps it from asking or fetching."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    silent = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    return {**kept, **silent, "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}


def object_name(content: bytes, like: str) -> str:
    """Return the name that git gives a file's content, in the kind of hash that another name is of."""
    kind, whole = "sha256" if len(like) == 64 else "sha1", b"blob %d\0" % len(content) + content
    return hashlib.new(kind, whole, usedforsecurity=False).hexdigest()


def _contents(raw: bytes) -> Iterator[tuple[str, bytes]]:
    told = io.BytesIO(raw)
    while line := told.readline():
        words = line.split()
        if len(words) == 3:
            yield words[0].decode(), told.read(int(words[2]))
            told.read(1)


def _last_line(stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="backslashreplace").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("fatal:")), lines[-1] if lines else "it said nothing")
    return said.removeprefix("fatal: ")[:200]


ORIGIN, OWN = "refs/remotes/origin", "refs/heads"
GUESSES = (f"{ORIGIN}/HEAD", f"{ORIGIN}/main", f"{ORIGIN}/master", f"{OWN}/main", f"{OWN}/master")
REMEDY = "fetch it (`git fetch --unshallow`, or fetch-depth: 0 in the checkout), or name another with --base"


def base_of(history: History, asked: str | None) -> tuple[str, str]:
    """Return the name of the base branch, and its merge base with HEAD; raise `EvidenceUnavailable` where none is."""
    if (head := history.commit("HEAD")) is None:
        raise Absent("the repository has no commit yet, so there is no earlier bar")
    name, tip = _tip(history, asked)
    base = history.tell("merge-base", head, tip)[0]
    is_alone = base == head and name == "HEAD"
    is_shallow = (not base or is_alone) and history.tell("rev-parse", "--is-shallow-repository") == ["true"]
    if not base:
        cut = "the history is shallow" if is_shallow else "they have no common commit"
        raise EvidenceUnavailable(f"HEAD and {name} have no merge base: {cut}; {REMEDY}")
    if is_alone and is_shallow:  # where it came from is not here
        raise EvidenceUnavailable(f"the history is shallow and lacks what came before HEAD; {REMEDY}")
    return name, base


def _tip(history: History, asked: str | None) -> tuple[str, str]:
    """Return the name and the commit of the base branch; one that was named must be there."""
    target = os.environ.get("GITHUB_BASE_REF", "")
    named = (asked,) if asked else (f"{ORIGIN}/{target}", f"{OWN}/{target}") if target else ()
    there = history.tell("for-each-ref", "--format=%(refname)", *GUESSES)
    for name in named or (*(guess for guess in GUESSES if guess in there), "HEAD"):
        if commit := history.commit(name):
            return name.removeprefix("refs/remotes/").removeprefix("refs/heads/"), commit
    raise EvidenceUnavailable(f"there is no revision {asked or target!r} to compare with; {REMEDY}")


Files = dict[str, bytes]  # contents by path


class TwoStates:
    """A commit and the work tree, by path relative to the project; `base` is the branch that the commit is of."""

    def __init__(self, history: History, commit: str, root: Path, base: str = "") -> None:
        self.history, self.commit, self.root, self.base = history, commit, root, base
        self._tree = history.tree(commit)
        self.skipped: dict[str, None] = {}  # what was not compared and why, each once, as it was met

    @classmethod
    def since_base(cls, root: Path, asked: str | None) -> Self:
        """Return the base and the work tree; raise `EvidenceUnavailable` where there is no base."""
        history = History(root)
        name, commit = base_of(history, asked)
        return cls(history, commit, root, printable(name))

    def has(self, path: str) -> bool:
        """Return whether the commit has a plain file of this path."""
        return path in self._tree and self._tree[path].plain

    @cached_property
    def gone(self) -> frozenset[str]:
        """Return the paths that the commit has and the work tree has not."""
        return frozenset(path for path in self._tree if not os.path.lexists(self.root / path))

    def before(self, paths: Iterable[str]) -> Files:
        """Return the contents that files have in the commit."""
        blobs = {path: self._tree[path] for path in paths if self.has(path)}
        contents = self.history.read(blobs.values())
        found = {path: content for path, blob in blobs.items() if (content := contents.get(blob.oid)) is not None}
        self.skipped |= {f"{path} (too large, at the base)": None for path in blobs if path not in found}
        return found

    def named(self, paths: Sequence[str]) -> tuple[Files, Files]:
        """Return the contents of some files in the commit and in the work tree, for those that are there."""
        now = {path: content for path in paths if (content := self._now(path)) is not None}
        return self.before(paths), now

    def changed(self, folders: Iterable[str], suffixes: str | tuple[str, ...]) -> tuple[Files, Files]:
        """Return the contents of the files under some paths that differ, in the commit and in the work tree."""
        folders = tuple(dict.fromkeys(folder.split("::")[0] for folder in folders))
        paths = {path for path in self._tree if any(is_under(path, folder) for folder in folders)}
        paths |= {path.relative_to(self.root).as_posix() for path in files_of(folders, self.root)}
        now: dict[str, bytes | None] = {}
        for path in sorted(path for path in paths if path.endswith(suffixes)):
            content, blob = self._now(path), self._tree.get(path)
            if content is None or not blob or not blob.plain or object_name(content, blob.oid) != blob.oid:
                now[path] = content
        return self.before(now), {path: content for path, content in now.items() if content is not None}

    def _now(self, path: str) -> bytes | None:
        """Return a file of the work tree, or `None` for what is not there, a link, no file, or too large."""
        file, why = self.root / path, "too large"
        try:
            if file.is_symlink() or not file.is_file():
                return None
            if file.stat().st_size <= MAX_BLOB_BYTES:
                return file.read_bytes()
        except OSError as error:
            why = error.strerror or str(error)
        self.skipped[f"{path} ({why})"] = None
        return None
