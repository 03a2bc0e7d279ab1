"""The samples file: what a benchmark measured, raw, for others to judge."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from amp_core.device import DeviceFacts

SCHEMA = "gates.samples/1"


class Direction(StrEnum):
    """Which way a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NONE = "none"


@dataclass(frozen=True)
class Metric:
    """The raw samples of one metric, by arm; `paired` where the arms' n-th samples belong together.

    Raises:
        ValueError: no arm, an arm without samples, a sample that is not finite, or paired arms of unequal length.
    """

    unit: str
    direction: Direction
    paired: bool
    arms: Mapping[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        if not self.arms:
            raise ValueError("a metric needs at least one arm, found none")
        for arm, samples in self.arms.items():
            if not samples:
                raise ValueError(f"arm {arm!r} needs at least one sample, found none")
            for index, sample in enumerate(samples):
                if not math.isfinite(sample):
                    raise ValueError(f"arm {arm!r} needs finite samples, found {sample!r} at {index}")
        lengths = {arm: len(samples) for arm, samples in self.arms.items()}
        if self.paired and len(set(lengths.values())) > 1:
            raise ValueError(f"paired arms need equally many samples, found {lengths!r}")


@dataclass(frozen=True)
class Samples:
    """Everything that a benchmark hands over; `timing` says in one sentence how it was timed."""

    device: DeviceFacts
    environment: Mapping[str, str]
    settings: Mapping[str, str]
    timing: str
    metrics: Mapping[str, Metric]

    def as_json(self) -> dict[str, Any]:
        """Return the content of the samples file."""
        return {
            "schema": SCHEMA,
            "device": asdict(self.device),
            "environment": dict(self.environment),
            "settings": dict(self.settings),
            "timing": self.timing,
            "metrics": {name: asdict(metric) for name, metric in self.metrics.items()},
        }


def write(path: Path, samples: Samples) -> None:
    """Write the samples file, whole or not at all."""
    write_text(path, json.dumps(samples.as_json(), indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all: into a temporary file beside it, which then takes its place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_unwritable(path: Path) -> None:
    """Raise a one-line ValueError if no file can be written at this path; leave nothing behind."""
    probe = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if path.is_dir():
            raise ValueError(f"cannot write {str(path)!r}: it is a folder, expected a file")
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}, create it first")
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"cannot write {str(path)!r}: {error.strerror}") from error
