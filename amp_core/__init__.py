"""A mixed-precision training core on PyTorch: one training step for fp32, bf16 and fp16."""

from amp_core.data import MarkovChain, draw_chain, loader, loader_options, to_device
from amp_core.device import DeviceFacts, DeviceUnavailable, inspect, pick
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import Precision, Resolved, compute_effective_precision, precision_for, resolve
from amp_core.scaler import LossScaler, ScaleCollapsed, ScaleState
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import StepResult, TrainStep
from amp_core.tracking import JsonlSink, MemorySink, Sink, StepRecord, Tracker, WandbSink
from amp_core.trainer import Evaluation, TrainConfig, TrainResult, evaluate, train

__all__ = [
    "GPT",
    "DeviceFacts",
    "DeviceUnavailable",
    "Evaluation",
    "GPTConfig",
    "JsonlSink",
    "LossScaler",
    "MarkovChain",
    "MemorySink",
    "Precision",
    "Resolved",
    "ScaleCollapsed",
    "ScaleState",
    "Schedule",
    "Sink",
    "StepRecord",
    "StepResult",
    "Tracker",
    "TrainConfig",
    "TrainResult",
    "TrainStep",
    "WandbSink",
    "compute_effective_precision",
    "draw_chain",
    "evaluate",
    "inspect",
    "loader",
    "loader_options",
    "next_token_loss",
    "pick",
    "precision_for",
    "resolve",
    "to_device",
    "train",
    "warmup_cosine",
]
