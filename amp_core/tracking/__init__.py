"""Tracking: the numbers of every step and the rates between flushes, and where they go."""

from amp_core.tracking.jsonl import JsonlSink
from amp_core.tracking.memory import MemorySink
from amp_core.tracking.records import METRICS, Flush, Rates, StepRecord
from amp_core.tracking.tensorboard import TensorBoardSink
from amp_core.tracking.tracker import Sink, Tracker
from amp_core.tracking.wandb import WandbSink

__all__ = [
    "METRICS",
    "Flush",
    "JsonlSink",
    "MemorySink",
    "Rates",
    "Sink",
    "StepRecord",
    "TensorBoardSink",
    "Tracker",
    "WandbSink",
]
