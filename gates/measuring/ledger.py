"""The attempts ledger: what was measured before of the same code for the same criterion counts, however it ended.

A line holds one attempt and the hash of the line before it, so that one that was changed or taken out is noticed. It is
kept twice, in the project (`.gates/attempts.jsonl`) and in the user's folder for state, there by what was asked: a copy
of the project elsewhere asks the same. Where one copy is gone or short, the other speaks.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pydantic import Field, ValidationError

from gates.measuring.samples import Metric
from gates.model import Model

NAME = Path(".gates", "attempts.jsonl")
START = "0" * 64


class Attempt(Model):
    """One attempt to answer a criterion: its samples, and why they are not believed, where they are not.

    `missed` names the measures that failed by it, `drawn` is the digest of times that were handed over.
    """

    key: str
    at: str
    ended: str
    pairs: int
    unfit: tuple[str, ...] = ()
    restarts: tuple[int, ...] = ()
    split: int = 1
    metrics: dict[str, Metric] = Field(default_factory=dict)
    missed: tuple[str, ...] = ()
    drawn: str = ""


class Recalled(Model):
    """The earlier attempts of one key; `problem` is why they may not be all."""

    attempts: tuple[Attempt, ...] = ()
    problem: str = ""


def key_of(*facts: str) -> str:
    """Return the key of attempts that answer the same question: the same code, criterion, device and machine."""
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


class Ledger:
    """The two copies of the ledger of a project."""

    def __init__(self, root: Path) -> None:
        self._own = root / NAME

    def recall(self, key: str) -> Recalled:
        """Return the earlier attempts of a key."""
        kept = _kept(key)
        copies = [_read(path) for path in (self._own, kept)]
        others = (kept, self._own)
        problems = [
            f"{problem} (remove the file, and it is written again from {other})"
            for (_, problem), other in zip(copies, others, strict=True) if problem
        ]  # fmt: skip
        shorter, longer = sorted(([one for one in attempts if one.key == key] for attempts, _ in copies), key=len)
        if any(one not in longer for one in shorter):  # their order may differ where two run at once
            problems.append(f"{self._own} and its copy {kept} tell of different attempts")
        return Recalled(attempts=tuple(longer), problem="; ".join(problems))

    def same(self, drawn: str, key: str) -> Attempt | None:
        """Return an earlier attempt that handed over the very same times: at whatever here, or at a key elsewhere."""
        known = (*_read(self._own)[0], *_read(_kept(key))[0]) if drawn else ()
        return next((one for one in known if one.drawn == drawn), None)

    def append(self, attempt: Attempt) -> str:
        """Add an attempt to both copies, and what one of them lacks of the other; an altered copy stays as it is.

        Return why it is nowhere written, where that is so.
        """
        known = self.recall(attempt.key).attempts
        problems = []
        for path in (self._own, _kept(attempt.key)):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path == self._own:
                    _keep_from_git(path.parent)
                _append(path, known, attempt)
            except OSError as error:
                problems.append(f"{path}: {error.strerror or error}")
        return f"the ledger cannot be written ({'; '.join(problems)})" if len(problems) == 2 else ""


def _keep_from_git(folder: Path) -> None:
    with suppress(FileExistsError), folder.joinpath(".gitignore").open("x", encoding="utf-8") as file:
        file.write("*\n")


def _append(path: Path, known: Sequence[Attempt], attempt: Attempt) -> None:
    if path.exists() and not path.is_file():
        return  # a pipe would keep us waiting; reading it has told that it is none
    with _locked(path) as file:
        attempts, problem = _read(path)
        if problem:
            return
        last = _last_hash(path)
        for one in (*(one for one in known if one not in attempts), attempt):
            line, last = _line(one, last)
            file.write(line)


def _line(attempt: Attempt, before: str) -> tuple[str, str]:
    told = attempt.model_dump(mode="json")
    own = _hash(told, before)
    return json.dumps({"before": before, "attempt": told, "hash": own}) + "\n", own


def _hash(told: object, before: str) -> str:
    return hashlib.sha256(f"{before}{json.dumps(told, sort_keys=True)}".encode()).hexdigest()


def _read(path: Path) -> tuple[list[Attempt], str]:
    """Return the attempts of a copy up to the first line that is not as it was written, and what is wrong there."""
    attempts: list[Attempt] = []
    if path.exists() and not path.is_file():
        return attempts, f"{path} is no plain file"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return attempts, ""
    except OSError as error:
        return attempts, f"{path} cannot be read: {error.strerror or error}"
    for number, line, before in _lines(text):
        try:
            told = json.loads(line)
            if told["before"] != before or told["hash"] != _hash(told["attempt"], before):
                return attempts, f"line {number} of {path}, or one before it, was changed or removed"
            attempts.append(Attempt.model_validate(told["attempt"]))
        except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
            return attempts, f"line {number} of {path} was changed: it is no attempt"
    return attempts, ""


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield number and text of each line, and the hash of the line before it."""
    before = START
    for number, line in enumerate(text.splitlines(), 1):
        yield number, line, before
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            before = str(json.loads(line)["hash"])


def _last_hash(path: Path) -> str:
    before = START
    for _, line, _ in _lines(path.read_text(encoding="utf-8")):
        before = str(json.loads(line)["hash"])
    return before


@contextmanager
def _locked(path: Path) -> Iterator[IO[str]]:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
        file.flush()
        os.fsync(file.fileno())


def _kept(key: str) -> Path:
    """Return the copy in the user's folder for state of the attempts of one key."""
    return _state_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.jsonl"


def _state_folder() -> Path:
    """Return the user's folder for what must outlive a run, see the XDG base directory specification."""
    asked = os.environ.get("XDG_STATE_HOME", "")
    base = Path(asked) if Path(asked).is_absolute() else Path.home() / ".local" / "state"
    return base / "gates" / "attempts"


def pooled(name: str, now: Metric, earlier: Sequence[Attempt]) -> tuple[Metric, tuple[Attempt, ...]]:
    """Return the samples of a metric of all attempts on a machine that was fit, the earlier ones first."""
    used = tuple(one for one in earlier if not one.unfit and _fits(one.metrics.get(name), now))
    arms = {
        arm: (*(value for one in used for value in one.metrics[name].arms[arm]), *values)
        for arm, values in now.arms.items()
    }
    return now.model_copy(update={"arms": arms}), used


def _fits(then: Metric | None, now: Metric) -> bool:
    return then is not None and set(then.arms) == set(now.arms)
