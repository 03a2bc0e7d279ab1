"""Which revision the bar of today is compared with."""

import os
from dataclasses import dataclass

from gates.errors import EvidenceUnavailable
from gates.project.history import History

GUESSES = ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main",
           "refs/heads/master")  # fmt: skip
REMEDY = "fetch it (`git fetch --unshallow`, or fetch-depth: 0 in the checkout), or name another with --base"


@dataclass(frozen=True)
class Base:
    """The revision compared with: its name, its commit, and, where HEAD is itself the base, the commit before it."""

    name: str
    commit: str
    before: str | None = None


def find(history: History, asked: str | None) -> Base:
    """Return the merge base of HEAD and the base branch; raise `EvidenceUnavailable` with what to do where none is."""
    head = history.commit("HEAD")
    if head is None:
        raise EvidenceUnavailable("the repository has no commit yet, so there is no earlier bar")
    name, tip = _tip(history, asked)
    base = history.merge_base(head, tip)
    if base is None:
        cut = "the history is shallow" if history.shallow else "they have no common commit"
        raise EvidenceUnavailable(f"HEAD and {name} have no merge base: {cut}; {REMEDY}")
    before = history.commit("HEAD^1") if base == head else None
    if base == head and history.shallow and (before is None or name == "HEAD"):
        raise EvidenceUnavailable(f"the history is shallow and lacks what came before HEAD; {REMEDY}")
    return Base(name, base, before)


def _tip(history: History, asked: str | None) -> tuple[str, str]:
    """Return the name and the commit of the base branch; one that was named must be there."""
    target = os.environ.get("GITHUB_BASE_REF", "")
    named = (asked,) if asked else (f"refs/remotes/origin/{target}", f"refs/heads/{target}") if target else ()
    for name in named:
        if commit := history.commit(name):
            return _short(name), commit
    if named:
        raise EvidenceUnavailable(f"there is no revision {asked or target!r} to compare with; {REMEDY}")
    there = history.refs(GUESSES)
    for name in GUESSES:
        if name in there:
            return _short(name), there[name]
    head = history.commit("HEAD")
    assert head is not None
    return "HEAD", head


def _short(name: str) -> str:
    return name.removeprefix("refs/remotes/").removeprefix("refs/heads/")
