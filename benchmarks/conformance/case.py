"""What a case is, what a subject is, and what comes of asking the one of the other."""

import re
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from benchmarks.conformance.job import Job, Trace

T = TypeVar("T")


class Outcome(StrEnum):
    """How a subject stands to a case."""

    CONFORMS = "conforms"
    FAILS = "fails"
    NOT_APPLICABLE = "not applicable"
    ERROR = "error"


@dataclass(frozen=True)
class Result:
    """An outcome and what was observed: a number, a message, or the reason why the case does not apply."""

    outcome: Outcome
    observed: str


class NotApplicableError(Exception):
    """The subject offers nothing that the case could ask; never counted as conforming."""


class Subject(Protocol):
    """A library, or a loop, that trains."""

    @property
    def name(self) -> str:
        """Return the name that the table shows."""

    def train(self, job: Job) -> Trace:
        """Do the job as the library's documentation says; raise NotApplicableError where it has no way to."""


@dataclass(frozen=True)
class Case:
    """One hazard asked as a question.

    `judge` answers it for a subject; `broken` is a subject with the bug, for which the answer must be no. `unseen` says
    what of the hazard a CPU cannot show.
    """

    hazard: str
    question: str
    conforming: str
    references: tuple[str, ...]
    judge: Callable[[Subject], Result]
    broken: Subject
    unseen: str = ""


@dataclass(frozen=True)
class Named:
    """A subject that does not train: the broken side of a case that asks for something other than training."""

    name: str

    def train(self, job: Job) -> Trace:
        """Refuse."""
        raise NotApplicableError(f"{self.name} does not train, asked for {len(job.windows)} windows")


BROKEN = Named("broken")


@dataclass(frozen=True)
class Offers(Generic[T]):
    """What some subjects offer beyond training, by the subject's name; `missing` says why the others do not count."""

    by_name: Mapping[str, T]
    missing: str

    def of(self, subject: Subject) -> T:
        """Return what the subject offers.

        Raises:
            NotApplicableError: it offers nothing of the kind.
        """
        if subject.name not in self.by_name:
            raise NotApplicableError(self.missing)
        return self.by_name[subject.name]


def verdict(good: bool, observed: str) -> Result:
    """Return CONFORMS or FAILS with what was observed."""
    return Result(Outcome.CONFORMS if good else Outcome.FAILS, observed)


def ask(case: Case, subject: Subject) -> Result:
    """Return the result of a case for a subject; whatever it raises unforeseen is an error, not a failure."""
    try:
        with hushed():
            return case.judge(subject)
    except NotApplicableError as reason:
        return Result(Outcome.NOT_APPLICABLE, str(reason))
    except Exception as error:  # noqa: BLE001  a library of others may raise anything; the table shows it
        return Result(Outcome.ERROR, described(error))


def described(error: BaseException) -> str:
    """Return an exception's type and the first line of its message, short and without this run's temporary paths."""
    first = re.sub(rf"{re.escape(tempfile.gettempdir())}/\w+", "...", str(error).strip().partition("\n")[0])
    return textwrap.shorten(
        f"{type(error).__name__}: {first}" if first else type(error).__name__, 150, placeholder=" ..."
    )


def window_size(job: Job) -> int:
    """Return the micro-batches of a window, for libraries that take one number for all but an epoch's last.

    Raises:
        NotApplicableError: the windows differ otherwise.
    """
    sizes = [len(window) for window in job.windows]
    if any(size != sizes[0] for size in sizes[:-1]) or sizes[-1] > sizes[0]:
        raise NotApplicableError("windows of different sizes within an epoch cannot be asked for")
    return sizes[0]


@contextmanager
def hushed() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of a block instead of showing or raising them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
