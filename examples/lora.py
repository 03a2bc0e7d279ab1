"""Fine-tune a Hugging Face model with LoRA in mixed precision: `python -m examples.lora --precision bf16 --steps 80`.

The base is frozen; the adapters alone are trained, saved and read back. It is a tiny GPT-2 with random weights here, so
that nothing is downloaded: `AutoModelForCausalLM.from_pretrained(...)` takes its place.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel

import amp_core as amp
from amp_core.step import Batch

VOCABULARY, LENGTH = 32, 16


def a_base() -> GPT2LMHeadModel:
    """Return the model that is to be fine-tuned, the same on every call."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2, initializer_range=0.2,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def counting() -> TensorDataset:
    """Return sequences that count upwards, each from another number: int64 (32, 16)."""
    return TensorDataset((torch.arange(VOCABULARY)[:, None] + torch.arange(LENGTH)) % VOCABULARY)


def loss_fn(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss of the next token, and the share of tokens that are right."""
    (tokens,) = batch
    scores, following = model(input_ids=tokens).logits[:, :-1].float(), tokens[:, 1:]
    right = (scores.argmax(-1) == following).float().mean()
    return functional.cross_entropy(scores.flatten(0, 1), following.flatten()), {"accuracy": right}


def train(precision: str, steps: int, device: torch.device, out: Path, sinks: Sequence[Any] = ()) -> None:
    """Train adapters on the base, and save them alone."""
    amp.seed_all(0)
    config = LoraConfig(r=8, lora_alpha=32, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
    model = get_peft_model(a_base(), config).to(device)
    adapters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(adapters, lr=2e-2, fused=True)
    step = amp.TrainStep(model, optimizer, precision, loss_fn, max_grad_norm=1.0)
    stream = amp.Stream(amp.loader(counting(), batch_size=8, device=device, seed=0), device)
    with amp.Tracker(10, sinks) as tracker:
        amp.fit(step, stream, tracker, amp.Plan(steps))
    model.save_pretrained(str(out))


def main(argv: Sequence[str] | None = None) -> None:
    """Train from the command line, read the adapters back, and print how many next tokens they get right."""
    parser = argparse.ArgumentParser(prog="python -m examples.lora", description=__doc__)
    parser.add_argument("--precision", default="bf16", help="fp32, tf32, bf16 (default) or fp16")
    parser.add_argument("--steps", type=int, default=80, help="optimizer steps (default 80)")
    parser.add_argument("--out", type=Path, default=Path("adapters"), help="where the adapters go (default adapters)")
    arguments = parser.parse_args(argv)
    train(arguments.precision, arguments.steps, amp.pick(None), arguments.out)
    tokens = counting().tensors
    with torch.no_grad():
        before, after = (loss_fn(m.eval(), tokens)[1]["accuracy"].item() for m in (a_base(), read(arguments.out)))
    print(f"next tokens right: {before:.2f} before, {after:.2f} after")


def read(folder: Path) -> nn.Module:
    """Return the base with adapters that were saved."""
    model: nn.Module = PeftModel.from_pretrained(a_base(), folder)
    return model


if __name__ == "__main__":
    main()
