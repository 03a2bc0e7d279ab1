"""Tracking: the numbers of every step and the rates between flushes, and where they go."""

from amp_core.tracking.jsonl import JsonlSink
from amp_core.tracking.records import Flush, MemorySink, StepRecord
from amp_core.tracking.tensorboard import TensorBoardSink
from amp_core.tracking.tracker import Sink, Tracker
from amp_core.tracking.wandb import WandbSink

__all__ = ["Flush", "JsonlSink", "MemorySink", "Sink", "StepRecord", "TensorBoardSink", "Tracker", "WandbSink"]
