"""Which cases and subjects there are, and what comes of asking them all."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from benchmarks.conformance import cases, subjects
from benchmarks.conformance.case import Case, Result, Subject, ask

ORDER = ("amp_core", "by_hand", "accelerate", "fabric", "lightning")
NEEDS = {"accelerate": "accelerate", "fabric": "lightning", "lightning": "lightning"}


def discover_cases() -> dict[str, Case]:
    """Return every case by its file's name, in the order of the hazards."""
    names = sorted(name for _, name, _ in pkgutil.iter_modules(cases.__path__))
    return {name: importlib.import_module(f"{cases.__name__}.{name}").CASE for name in names}


def discover_subjects() -> list[Subject]:
    """Return every subject whose library is installed; ours and the recipe by hand come first."""
    names = [name for _, name, _ in pkgutil.iter_modules(subjects.__path__)]
    found = [importlib.import_module(f"{subjects.__name__}.{name}").SUBJECT for name in names]
    installed = [each for each in found if each.name not in NEEDS or find_spec(NEEDS[each.name]) is not None]
    return sorted(installed, key=lambda subject: ORDER.index(subject.name))


def run(asked: Iterable[tuple[str, Case]], of: Iterable[Subject]) -> Iterator[tuple[str, str, Result]]:
    """Yield (file name of the case, name of the subject, result) for each pair."""
    those = list(of)
    for name, case in asked:
        for subject in those:
            yield name, subject.name, ask(case, subject)
