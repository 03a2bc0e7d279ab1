"""What is known of libraries without reading them: names that are one, and kinds of classes."""

import re
from functools import cache

_SAME = {
    "torch.nn.utils.clip_grad.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_value_": "torch.nn.utils.clip_grad_value_",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.cuda.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.autocast_mode.autocast": "torch.cuda.amp.autocast",
    "torch.amp.autocast_mode.autocast": "torch.amp.autocast",
    "torch.autocast": "torch.amp.autocast",
    "torch.autograd.grad_mode.no_grad": "torch.no_grad",
    "torch.nn.parallel.distributed.DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.modules.module.Module": "torch.nn.Module",
    "torch.optim.optimizer.Optimizer": "torch.optim.Optimizer",
}
_IN_OPTIM = re.compile(r"torch\.optim\.[a-z_0-9]+\.([A-Z]\w*)")

_LIBRARIES = """
    accelerate apex bitsandbytes composer deepspeed fairscale hydra ignite jax lightning matplotlib mlflow
    numpy omegaconf pandas peft pytorch_lightning ray scipy sklearn tensorboard tensorboardX tensorflow timm
    torch torchaudio torchmetrics torchvision tqdm transformers triton wandb xformers
"""
LIBRARIES = frozenset(_LIBRARIES.split())

SCALER, OPTIMIZER, MODULE = "torch.amp.GradScaler", "torch.optim.Optimizer", "torch.nn.Module"
SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"

_KINDS: dict[str, re.Pattern[str]] = {
    SCALER: re.compile(r"torch\.(cuda\.|cpu\.)?amp\.GradScaler|.*\b(Sharded)?GradScaler"),
    OPTIMIZER: re.compile(
        r"torch\.optim\.(?!lr_scheduler|swa_utils)[A-Z]\w*|transformers\.(AdamW|Adafactor)|apex\.optimizers\.\w+|"
        r"bitsandbytes\.optim\.\w+|timm\.optim\.\w+|deepspeed\.ops\.adam\.\w+|.*\.(AdamW?|SGD|Lion|LAMB|Adafactor|RMSprop)"
    ),
    SCHEDULER: re.compile(r"torch\.optim\.lr_scheduler\.[A-Z]\w*|transformers\.get_\w*schedul\w*|.*LR|.*Scheduler"),
    MODULE: re.compile(
        r"torch\.nn\.(?!Parameter$|init\b|functional\b|utils\b)(\w+\.)*[A-Z]\w*|torchvision\.models\.\w+|"
        r"timm\.create_model|transformers\.Auto\w+\.from_pretrained"
    ),
}
_CALLED: dict[str, re.Pattern[str]] = {
    SCALER: re.compile(r"(?i)(^|_)(grad_?|loss_?|amp_?)?scalers?(_|$|[0-9])"),
    OPTIMIZER: re.compile(r"(?i)(^|_)opt(im|imizer|imizers|imiser|s|im[sg])?(_|$|[0-9a-z]?$)"),
    SCHEDULER: re.compile(r"(?i)sched(uler|ule)?s?(_|$|[0-9])|(^|_)sch(_|$|[0-9])"),
    MODULE: re.compile(r"(?i)(^|_)(model|net|network|module|generator|discriminator|encoder|decoder)(_|$|[0-9])"),
}


@cache
def canonical(dotted: str) -> str:
    """Return the name that a library's own re-exports lead to."""
    if not dotted.startswith("torch."):
        return dotted
    inside = _IN_OPTIM.fullmatch(dotted)
    if inside and not dotted.startswith(("torch.optim.lr_scheduler.", "torch.optim.swa_utils.")):
        return f"torch.optim.{inside[1]}"
    found = (same + dotted[len(name) :] for name, same in _SAME.items() if f"{dotted}.".startswith(f"{name}."))
    return next(found, dotted)


@cache
def is_kind(name: str, wanted: str) -> bool:
    """Return whether a library's class is, or extends, the wanted one, as far as its name tells."""
    pattern = _KINDS.get(wanted)
    return name == wanted or (pattern is not None and pattern.fullmatch(name) is not None)


@cache
def is_called(name: str, wanted: str) -> bool:
    """Return whether something is called what objects of a kind are called."""
    pattern = _CALLED.get(wanted)
    return pattern is not None and pattern.search(name) is not None
