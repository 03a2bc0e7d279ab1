"""Bundles of measurements from other machines: read, and compared with the state of the project here."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Self

from gates.bundles import (
    BadBundle,
    BoundFile,
    BundledRun,
    Definition,
    Origin,
    contents,
    decode,
    definition_of,
    signed_part,
    signer_of,
)
from gates.check import Evidence
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.bound_files import bind
from gates.measuring.taken import MeasurementRun
from gates.model import Model
from gates.task.measurement import Measurement
from gates.task.task import Task

FOLDER = "bundles"
Bound = Mapping[str, Mapping[str, BoundFile]]  # by measurement and path


class Standing(StrEnum):
    """What a bundle is worth here."""

    FITS = "fits"
    STALE = "stale"
    REFUSED = "refused"


class SeenRun(Model):
    """A run of a bundle, what it was made for, and what was changed since."""

    run: MeasurementRun
    measures: tuple[Definition, ...]
    changed: tuple[str, ...]


class HandedIn(Model):
    """A bundle that was handed in; `why` says what is wrong with it, or what it repeats."""

    path: str
    standing: Standing
    why: str = ""
    origin: Origin | None = None
    signer: str = ""
    digest: str = ""
    runs: tuple[SeenRun, ...] = ()


class Bundles(Evidence):
    """Every bundle that was handed in, in the order of their paths."""

    handed_in: tuple[HandedIn, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read each bundle and compare the files that it speaks of with those here."""
        if not task.bundles:
            raise EvidenceUnavailable("no bundle was handed in")
        folder = context.folder(FOLDER).evidence
        now = {one.id: {file.path: file for file in bind(task, one, context)} for one in task.measurements}
        seen: dict[str, str] = {}
        handed_in = []
        for i, path in enumerate(task.bundles):
            one = _looked_at(path, task, context, now, folder / f"{i}.json")
            if one.digest in seen:
                one = one.model_copy(update={"why": f"the same as {seen[one.digest]}", "runs": ()})
            elif one.digest:
                seen[one.digest] = path
            handed_in.append(one)
        return cls(how="bundles made on other machines", handed_in=tuple(handed_in))


def answering(task: Task, measurement: Measurement, device: str, context: Context) -> str:
    """Return the path of a bundle that answers all that is asked of a measurement on a device, or nothing."""
    measures = (measure for criterion in task.criteria for measure in criterion.measures)
    wanted = [definition_of(one) for one in measures if one.from_ == measurement.id and one.on == device]
    try:
        handed_in = Bundles.collect(task, context).handed_in
    except EvidenceUnavailable:
        return ""
    for handed in handed_in:
        for seen in handed.runs:
            there = seen.run.samples is not None and seen.run.samples.device.type == device
            if there and seen.run.id == measurement.id and not seen.changed and all(w in seen.measures for w in wanted):
                return handed.path
    return ""


def _looked_at(path: str, task: Task, context: Context, now: Bound, kept: Path) -> HandedIn:
    try:
        data = contents(context.root / path)
        bundle = decode(data)
        signer = signer_of(signed_part(bundle), bundle.signature, context.signers) if context.signers else ""
    except BadBundle as error:
        return HandedIn(path=path, standing=Standing.REFUSED, why=str(error))
    if bundle.task.id != task.id:
        why = f"it is evidence of the task {bundle.task.id}, not of {task.id}"
        return HandedIn(path=path, standing=Standing.REFUSED, why=why)
    kept.write_bytes(data)
    told = {"raw": f"{FOLDER}/{kept.name}", "elsewhere": f"{path}, {f'signed by {signer}' if signer else 'not signed'}"}
    runs = tuple(_seen(one, task, context.root, now, told) for one in bundle.runs)
    stale = all(run.changed for run in runs)
    return HandedIn(
        path=path, standing=Standing.STALE if stale else Standing.FITS, origin=bundle.origin, signer=signer,
        digest=bundle.digest, runs=runs, why=_changes(runs) if any(run.changed for run in runs) else "",
    )  # fmt: skip


def _seen(one: BundledRun, task: Task, root: Path, now: Bound, told: dict[str, str]) -> SeenRun:
    changed = tuple(_changed(one, task, root, now))
    return SeenRun(run=one.run.model_copy(update=told), measures=one.measures, changed=changed)


def _changed(one: BundledRun, task: Task, root: Path, now: Bound) -> Iterator[str]:
    """Say what is not as it was: the measurement in the task file, and the files that it speaks of."""
    measurement = next((m for m in task.measurements if m.id == one.run.id), None)
    if measurement is None:
        yield f"the task has no measurement {one.run.id} any more"
        return
    if definition_of(measurement) != one.definition:
        yield f"measurement {one.run.id} in the task file was changed"
    was, files = {file.path: file for file in one.files}, now[measurement.id]
    for path in sorted(was.keys() | files.keys()):
        if words := _difference(was.get(path), files.get(path), there=(root / path).exists()):
            yield f"{path} {words}"


def _difference(was: BoundFile | None, now: BoundFile | None, *, there: bool) -> str:
    if was is None:
        return "was added"
    if now is None:
        return "is not used any more" if there else "was removed"
    if was.sha256 != now.sha256:
        return "was changed"
    return "" if was == now else "changed its mode"


def _changes(runs: tuple[SeenRun, ...]) -> str:
    changed = list(dict.fromkeys(change for run in runs for change in run.changed))
    more = f" and {len(changed) - 10} more" if len(changed) > 10 else ""
    return f"{', '.join(changed[:10])}{more}"
