"""A GAN in mixed precision, two optimizers in turn: `python -m examples.gan --precision fp16 --steps 600`.

Each network has a `TrainStep` with its own optimizer and loss scale. An overflow of one skips that step alone.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import amp_core as amp
from amp_core.step import Batch

CENTRE, SPREAD = torch.tensor([2.0, -1.0]), 0.5  # of the points that the generator is to make
NOISE = 8


def a_network(inputs: int, outputs: int) -> nn.Module:
    """Return a small network."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, outputs)
    )


def make_steps(precision: str, device: torch.device) -> tuple[amp.TrainStep, amp.TrainStep]:
    """Return the discriminator's step, on real points and noise, and the generator's, on noise."""
    discriminator, generator = a_network(2, 1).to(device), a_network(NOISE, 2).to(device)

    def tell_apart(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        real, noise = batch
        with torch.no_grad():
            made = generator(noise)
        on_real, on_made = model(real).float(), model(made).float()
        right = torch.cat((on_real > 0, on_made < 0)).float().mean()
        return functional.softplus(-on_real).mean() + functional.softplus(on_made).mean(), {"accuracy": right}

    def deceive(model: nn.Module, batch: Batch) -> Tensor:
        # this reaches the discriminator, too, under another loss scale: its own step begins without these gradients
        return functional.softplus(-discriminator(model(batch[0])).float()).mean()

    def adam(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.5, 0.9), fused=True)

    averages = amp.Ema(generator.parameters(), decay=0.98)
    return (
        amp.TrainStep(discriminator, adam(discriminator), precision, tell_apart),
        amp.TrainStep(generator, adam(generator), precision, deceive, ema=averages),
    )


def train(precision: str, steps: int, device: torch.device, log: Path | None = None) -> Tensor:
    """Train both in turn; return points that the averaged generator makes, float32 (1024, 2), on the CPU."""
    amp.seed_all(0)
    points = TensorDataset(CENTRE + SPREAD * torch.randn(4096, 2))
    stream = amp.Stream(amp.loader(points, batch_size=128, device=device, seed=0), device)
    tell_apart, deceive = make_steps(precision, device)
    names = ("discriminator", "generator")
    sinks = [[] if log is None else [amp.JsonlSink(log / f"{name}.jsonl")] for name in names]
    with amp.Tracker(50, sinks[0]) as of_discriminator, amp.Tracker(50, sinks[1]) as of_generator:
        for _ in range(steps):
            (real,) = next(stream)
            of_discriminator.add(tell_apart((real, torch.randn(len(real), NOISE, device=device))))
            if of_generator.add(deceive((torch.randn(len(real), NOISE, device=device),))):
                tell_apart.read()  # raises if one of them makes no progress any more
                deceive.read()
    with amp.evaluating(deceive):
        made: Tensor = deceive.model(torch.randn(1024, NOISE, device=device))
    return made.float().cpu()


def main(argv: Sequence[str] | None = None) -> None:
    """Train from the command line, and print how near the generator came."""
    parser = argparse.ArgumentParser(prog="python -m examples.gan", description=__doc__)
    parser.add_argument("--precision", default="fp16", help="fp32, tf32, bf16 or fp16 (default)")
    parser.add_argument("--steps", type=int, default=600, help="steps of each network (default 600)")
    parser.add_argument("--log", type=Path, metavar="DIR", help="a folder for the numbers of both, as JSON lines")
    arguments = parser.parse_args(argv)
    made = train(arguments.precision, arguments.steps, amp.pick(None), arguments.log)
    print(f"real: mean {CENTRE.tolist()}, standard deviation {SPREAD}")
    print(f"made: mean {made.mean(0).tolist()}, standard deviation {made.std(0).tolist()}")


if __name__ == "__main__":
    main()
