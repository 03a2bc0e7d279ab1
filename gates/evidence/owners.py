"""Whose code a file is: the project's own, a dependency's, or Python's."""

import re
from pathlib import PurePath

from gates.model import Location

OURS = "the project"
PYTHON = "Python"
INSTALLED = re.compile(r"(?:^|/)(?:site-packages|dist-packages)/([^/]+)")
DEPRECATIONS = {"DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"}


def owner_of(location: Location) -> str:
    """Return whose a file is, by its path; one inside of the project is given relative to its root."""
    if installed := INSTALLED.search(location.path):
        return installed[1].removesuffix(".py")
    return PYTHON if PurePath(location.path).is_absolute() else OURS


def is_deprecation(category: str) -> bool:
    """Return whether a warning speaks of deprecated use; many libraries derive categories of their own."""
    return category in DEPRECATIONS or "Deprecat" in category or "RemovedIn" in category
