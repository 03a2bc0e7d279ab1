"""A mixed-precision training core on PyTorch: one training step for fp32, tf32, bf16 and fp16."""

from amp_core.chain import MarkovChain, draw_chain
from amp_core.checkpoint import CheckpointError
from amp_core.data import Stream, loader, loader_options, to_device, windows
from amp_core.device import DeviceFacts, DeviceUnavailable, inspect, pick
from amp_core.ema import Ema
from amp_core.evaluation import Evaluation, evaluate
from amp_core.loop import Checkpoints, FitResult, Plan, fit
from amp_core.loss import chunked_cross_entropy
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.norm import LeanLayerNorm, LeanRMSNorm
from amp_core.precision import (
    Precision,
    Resolved,
    compute_effective_precision,
    precision_for,
    resolve,
)
from amp_core.randomness import seed_all
from amp_core.scaler import LossScaler, ScaleCollapsed, ScaleState
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import StepResult, TrainStep
from amp_core.throughput import Peak, Throughput, count_training_flops, peak_for
from amp_core.tracking import Flush, JsonlSink, MemorySink, Rates, Sink, StepRecord, TensorBoardSink, Tracker, WandbSink
from amp_core.trainer import TrainConfig, TrainResult, train

__all__ = [
    "GPT",
    "CheckpointError",
    "Checkpoints",
    "DeviceFacts",
    "DeviceUnavailable",
    "Ema",
    "Evaluation",
    "FitResult",
    "Flush",
    "GPTConfig",
    "JsonlSink",
    "LeanLayerNorm",
    "LeanRMSNorm",
    "LossScaler",
    "MarkovChain",
    "MemorySink",
    "Peak",
    "Plan",
    "Precision",
    "Rates",
    "Resolved",
    "ScaleCollapsed",
    "ScaleState",
    "Schedule",
    "Sink",
    "StepRecord",
    "StepResult",
    "Stream",
    "TensorBoardSink",
    "Throughput",
    "Tracker",
    "TrainConfig",
    "TrainResult",
    "TrainStep",
    "WandbSink",
    "chunked_cross_entropy",
    "compute_effective_precision",
    "count_training_flops",
    "draw_chain",
    "evaluate",
    "fit",
    "inspect",
    "loader",
    "loader_options",
    "next_token_loss",
    "peak_for",
    "pick",
    "precision_for",
    "resolve",
    "seed_all",
    "to_device",
    "train",
    "warmup_cosine",
    "windows",
]
