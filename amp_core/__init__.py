"""A mixed-precision training core on PyTorch: one training step for fp32, tf32, bf16 and fp16."""

from amp_core.checkpoint import CheckpointError
from amp_core.data import Stream, loader, loader_options, to_device, windows
from amp_core.device import DeviceUnavailable, inspect, pick
from amp_core.ema import Ema
from amp_core.evaluation import evaluating
from amp_core.loop import Checkpoints, Plan, fit
from amp_core.loss import chunked_cross_entropy
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.norm import LeanLayerNorm, LeanRMSNorm
from amp_core.precision import Precision, compute_effective_precision, precision_for, resolve
from amp_core.randomness import random_state, restore_random_state, seed_all
from amp_core.scaler import LossScaler, ScaleCollapsed
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import StepResult, TrainStep
from amp_core.throughput import Throughput
from amp_core.tracking import JsonlSink, MemorySink, Sink, TensorBoardSink, Tracker, WandbSink

__all__ = [
    "GPT",
    "CheckpointError",
    "Checkpoints",
    "DeviceUnavailable",
    "Ema",
    "GPTConfig",
    "JsonlSink",
    "LeanLayerNorm",
    "LeanRMSNorm",
    "LossScaler",
    "MemorySink",
    "Plan",
    "Precision",
    "ScaleCollapsed",
    "Schedule",
    "Sink",
    "StepResult",
    "Stream",
    "TensorBoardSink",
    "Throughput",
    "Tracker",
    "TrainStep",
    "WandbSink",
    "chunked_cross_entropy",
    "compute_effective_precision",
    "evaluating",
    "fit",
    "inspect",
    "loader",
    "loader_options",
    "next_token_loss",
    "pick",
    "precision_for",
    "random_state",
    "resolve",
    "restore_random_state",
    "seed_all",
    "to_device",
    "warmup_cosine",
    "windows",
]
