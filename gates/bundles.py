"""Bundles: a measurement made on another machine, with all that judges it here; there is one way to write one."""

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from gates.errors import UsageError
from gates.measuring.samples import Samples, first_wrong
from gates.measuring.taken import MeasurementRun
from gates.model import Model, TaskIdentity
from gates.task.measurement import Measurement
from gates.task.task import Measure
from gates.task.types import InsidePath
from gates.words import visible

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Definition = dict[str, JsonValue]


class BoundFile(Model):
    """A file that a measurement speaks of, as it was: its contents' SHA-256."""

    path: InsidePath
    sha256: Sha256


class BundledRun(Model):
    """One measurement on one device: what was asked for, the files that it speaks of, and what was seen."""

    definition: Definition
    measures: tuple[Definition, ...]
    files: Annotated[tuple[BoundFile, ...], Field(min_length=1)]
    run: MeasurementRun

    @model_validator(mode="after")
    def _of_one_piece(self) -> Self:
        device = self.samples.device.type
        if self.run.device not in {"any", device}:
            raise ValueError(f"samples of a {device!r} device, said to be of {self.run.device!r}")
        if self.run.problem:
            raise ValueError("samples of a run that did not end well")
        return self

    @property
    def samples(self) -> Samples:
        """Return the samples; without any there is nothing to bundle."""
        if self.run.samples is None:
            raise ValueError("a run without samples")
        return self.run.samples


class Origin(Model):
    """Where a bundle was made: when, by whom, on what, and by which command. It is told, not proved."""

    at: str
    by: str
    command: tuple[str, ...]
    environment: dict[str, str]
    commit: str | None
    dirty: bool | None

    @property
    def revision(self) -> str:
        """Return the commit in words."""
        return f"commit {self.commit[:12]}{', changed since' if self.dirty else ''}" if self.commit else "no commit"


class Bundle(Model, title="gates bundle"):
    """A measurement made on another machine. `digest` is that of all the rest; `signature` speaks for all but both."""

    schema_: Literal["gates.bundle/1"] = Field(alias="schema")
    task: TaskIdentity
    origin: Origin
    runs: Annotated[tuple[BundledRun, ...], Field(min_length=1)]
    signature: str | None = None
    digest: Sha256

    @model_validator(mode="after")
    def _once(self) -> Self:
        named = [(one.run.id, one.run.device) for one in self.runs]
        if len(set(named)) < len(named):
            raise ValueError("holds one measurement on one device twice")
        return self


def definition_of(part: Measurement | Measure) -> Definition:
    """Return what a part of a task asks for: all that was written but its place, its level and how long it may take."""
    left_out = {"level", "timeout_s"}
    asked: Definition = part.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=left_out)
    if isinstance(part, Measurement) and part.arms:
        asked["order"] = list(part.arms)  # the first is the one that the others are compared with
    return asked


MAX_BYTES = 64 * 1024 * 1024
LINE_ENDINGS = "its line endings were changed (git does so where .gitattributes does not say `-text`)"


class BadBundle(UsageError):
    """A file that is no bundle, or one that was altered; why, in one line."""


def encode(bundle: Bundle) -> bytes:
    """Return a bundle as the bytes of its file, with its digest made afresh."""
    rest = bundle.model_dump(mode="json", by_alias=True, exclude={"digest"})
    return _canonical({**rest, "digest": _digest(rest)})


def signed_part(bundle: Bundle) -> bytes:
    """Return what a signature speaks for: everything but itself, and the digest that covers it."""
    return _canonical(bundle.model_dump(mode="json", by_alias=True, exclude={"digest", "signature"}))


def decode(data: bytes) -> Bundle:
    """Return the bundle that a file holds; raise `BadBundle` where one byte of it is not as it was written."""
    try:
        bundle = Bundle.model_validate_json(data)
    except ValueError as error:
        why = ": ".join(filter(None, first_wrong(error))) if isinstance(error, ValidationError) else str(error)
        raise BadBundle(visible(f"it is no bundle of this version: {why:.300}")) from error
    if (written := encode(bundle)) != data:
        ends = written == data.replace(b"\r\n", b"\n")
        raise BadBundle(f"it was altered: {LINE_ENDINGS if ends else 'its digest is not that of its contents'}")
    return bundle


def read(path: Path) -> Bundle:
    """Return the bundle of a plain file; raise `BadBundle` for a link, a pipe, a folder or what is too large."""
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise BadBundle("it is no plain file")
        if path.stat().st_size > MAX_BYTES:
            raise BadBundle(f"it has more than {MAX_BYTES} bytes")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise BadBundle(f"it cannot be read: {getattr(error, 'strerror', error)}") from error
    return decode(data)


def _canonical(value: JsonValue) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(_canonical(value)).hexdigest()


NAMESPACE = "gates-bundle"
TIMEOUT_S = 120


def sign(data: bytes, key: Path) -> str:
    """Return the signature of a key over some bytes; raise `UsageError` where it cannot be made."""
    return _keygen(("-Y", "sign", "-n", NAMESPACE, "-f", str(key)), data, f"--sign-key {key}").decode("ascii")


def signer_of(bundle: Bundle, signers: Sequence[str]) -> str:
    """Return which of the allowed signers vouches for a bundle; raise `BadBundle` where none does."""
    if bundle.signature is None:
        raise BadBundle("it is not signed, and evidence_signers of [tool.gates] asks for a signature")
    with tempfile.TemporaryDirectory(prefix="gates-signature-") as folder:
        allowed, told = Path(folder, "allowed"), Path(folder, "signature")
        allowed.write_text("".join(f"{line}\n" for line in signers), encoding="utf-8")
        told.write_text(bundle.signature, encoding="utf-8")
        common, why = ("-f", str(allowed), "-s", str(told)), "its signature is none of evidence_signers of [tool.gates]"
        found = _keygen(("-Y", "find-principals", *common), b"", why)
        name = (found.decode("utf-8", "replace").splitlines() or [""])[0]
        words = ("-Y", "verify", "-n", NAMESPACE, "-I", name, *common)
        _keygen(words, signed_part(bundle), "its signature does not fit what it says")
    return visible(name)


def _keygen(words: tuple[str, ...], data: bytes, why: str) -> bytes:
    """Return what ssh-keygen prints; raise `BadBundle`, which says `why` and what ssh-keygen says, where it fails."""
    try:
        done = subprocess.run(["ssh-keygen", *words], input=data, capture_output=True, check=False, timeout=TIMEOUT_S)  # noqa: S607  # the one that the user has
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadBundle(f"{why}: ssh-keygen cannot be run ({getattr(error, 'strerror', None) or error})") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["ssh-keygen says no"]
        raise BadBundle(f"{why}: {visible(said[-1])[:200]}")
    return done.stdout


def handed_in(named: Sequence[Path], committed: Path, task: str, root: Path) -> tuple[str, ...]:
    """Return the paths of the bundles to look at, seen from the root; in a folder those of other tasks do not count."""
    found: set[Path] = set()
    for path in (*filter(Path.is_dir, [committed]), *named):
        if path.is_dir():
            found |= {one for one in path.glob("*.json") if _is_of(one, task)}
        elif path.exists() or path.is_symlink():
            found.add(path)
        else:
            raise UsageError(f"--evidence {str(path)!r}: there is no such file or folder")
    return tuple(sorted({_shown(path, root) for path in found}))


def _shown(path: Path, root: Path) -> str:
    """Return a path as seen from the root; raise `UsageError` for one that a report cannot name."""
    shown = Path(os.path.relpath(path.absolute(), root)).as_posix()
    if visible(shown) != shown:
        raise UsageError(f"{visible(shown)}: the name of the bundle holds what cannot be shown; rename it")
    return shown


def _is_of(path: Path, task: str) -> bool:
    try:
        return read(path).task.id == task
    except BadBundle:
        return True  # it is named in the report, not passed over
