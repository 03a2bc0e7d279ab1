"""A30: rows dropped by Weights & Biases because their step numbers do not rise."""

import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import torch

from amp_core.step import StepResult
from amp_core.tracking import Tracker, WandbSink
from benchmarks.conformance.case import BROKEN, Case, NotApplicableError, Offers, Result, Subject, verdict

LOSSES = [4.0, 3.0, 2.0, 1.0]
BLOCK = 32768  # bytes of a block in wandb's record log
FRAME = struct.Struct("<IHB")  # checksum, length, and kind: 1 whole, 2 first, 3 middle, 4 last part of a record


def by_ours(folder: Path) -> None:
    """Track four steps in two flushes; the tracker numbers them."""
    zero = torch.zeros(())
    with Tracker(2, [WandbSink("conformance", directory=folder)]) as tracker:
        for loss in LOSSES:
            tracker.add(StepResult(torch.tensor(loss), zero, zero, zero, zero))


def by_lightning(folder: Path) -> None:
    """Log four losses with Lightning's logger, each at the Trainer's global step."""
    from lightning.pytorch.loggers import WandbLogger

    logger = WandbLogger(project="conformance", save_dir=str(folder), offline=True)
    for step, loss in enumerate(LOSSES):
        logger.log_metrics({"train/loss": loss}, step)
    logger.experiment.finish()


def by_epoch(folder: Path) -> None:
    """Number the rows of two epochs by the step within each."""
    import wandb

    run = wandb.init(project="conformance", mode="offline", dir=folder)
    for step, loss in zip((0, 1, 0, 1), LOSSES, strict=True):
        run.log({"train/loss": loss}, step=step)
    run.finish()


OFFERS: Offers[Callable[[Path], None]] = Offers(
    {"amp_core": by_ours, "lightning": by_lightning, "broken": by_epoch},
    missing="step numbers are the user's own",
)


def judge(subject: Subject) -> Result:
    """Log four losses to a real offline run, and read its file back."""
    log = OFFERS.of(subject)
    if find_spec("wandb") is None:
        raise NotApplicableError("wandb is not installed")
    import wandb

    wandb.teardown()  # or the environment that is put back would name a process of wandb's that has ended
    quiet = patch.dict(os.environ, {"WANDB_SILENT": "true", "WANDB_MODE": "offline"})
    with tempfile.TemporaryDirectory() as name, quiet:
        log(Path(name))
        kept = logged(Path(name))
    return verdict(kept == LOSSES, f"{len(kept)} of {len(LOSSES)} rows kept")


def logged(root: Path) -> list[float]:
    """Return the losses that a finished offline run has logged, in order."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    wandb.teardown()  # waits for wandb's own process, which may still be writing the file after a run has finished
    (path,) = root.glob("wandb/offline-run-*/run-*.wandb")
    found: list[float] = []
    for blob in records_of(path.read_bytes()):
        record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]  # made at run time
        record.ParseFromString(blob)
        if record.WhichOneof("record_type") == "history":
            items = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            found += [json.loads(items["train/loss"])] if "train/loss" in items else []
    return found


def records_of(log: bytes) -> Iterator[bytes]:
    """Yield the records of wandb's log: frames in blocks of 32 KiB, after a header of 7 bytes."""
    position, parts = 7, b""
    while position < len(log):
        left = BLOCK - position % BLOCK
        if left < FRAME.size:
            position += left
            continue
        _, length, kind = FRAME.unpack_from(log, position)
        position += FRAME.size
        parts += log[position : position + length]
        position += length
        if kind in (1, 4):
            yield parts
            parts = b""


CASE = Case(
    hazard="A30",
    question="Does every step's row reach Weights & Biases?",
    conforming="four losses, numbered by the library, are all in an offline run's file",
    references=("wandb #1507", "wandb #1534", "wandb #1626", "PL #4811"),
    judge=judge,
    broken=BROKEN,
)
