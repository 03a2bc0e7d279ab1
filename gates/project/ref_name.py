"""The full name of a revision: a name that could mean several is refused, for each of them would be another bar."""

import re
from collections.abc import Collection

from gates.errors import EvidenceUnavailable

KINDS = ("refs/heads/{}", "refs/tags/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
REMOTES = "refs/remotes/"
USUAL = {"origin", "upstream"}
SUFFIX = re.compile(r"[~^:]|@\{|@$")
PART_OF_ID = re.compile(r"[0-9a-fA-F]{4,63}")
WHOLE_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def stem(revision: str) -> str:
    """Return the name in a revision without what follows it: `main` of `main~2`."""
    return SUFFIX.split(revision, maxsplit=1)[0]


def candidates(name: str) -> list[str]:
    """Return the full names that a short one may stand for; none for what is full already, or an object's id."""
    if not name or name == "HEAD" or name.startswith("refs/") or WHOLE_ID.fullmatch(name):
        return []
    return [kind.format(name) for kind in KINDS]


def may_be_id(name: str) -> bool:
    """Return whether a name may also be the beginning of an object's id."""
    return PART_OF_ID.fullmatch(name) is not None


def full_name(revision: str, *, there: Collection[str], remotes: Collection[str], is_id: bool) -> str:
    """Return a revision by its full name; raise `EvidenceUnavailable` with the names to choose from.

    `there` are those of its candidates that the repository has; `is_id` says whether it also begins an object's id.
    """
    name = stem(revision)
    owner = name.partition("/")[0] if "/" in name else ""
    foreign = owner in {*remotes, *USUAL} and not any(ref.startswith(REMOTES) for ref in there)
    if len(there) + is_id > 1 and there:
        found = " and ".join([*there, *(["a commit's id"] if is_id else [])])
        raise EvidenceUnavailable(f"the name is ambiguous, it is that of {found}; say which, by the full name")
    if there and foreign:
        (only,) = there
        raise EvidenceUnavailable(
            f"the only such name is {only}, nothing of a remote {owner!r}; fetch {REMOTES}{name}, or say {only}"
        )
    return f"{next(iter(there))}{revision[len(name) :]}" if there and "@{" not in revision else revision
