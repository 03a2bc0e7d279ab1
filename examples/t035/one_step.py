"""One training step of one arm by itself, for whoever times the arms against each other, each in its own process."""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch._dynamo  # else the process of each arm, which is forked after this, would load it with its first optimizer
from torch import Tensor

from amp_core.benchmark.setup import BenchmarkFailed
from amp_core.benchmark.workload import TrainingWorker, workload_for

CHECKED_EVERY = 256  # steps: reading the losses waits for the device


def make_step(arm: str, device: str, batch_size: int | None = None, width: int | None = None) -> Callable[[], Tensor]:
    """Return the step of an arm (a precision, or one by hand such as `bf16_by_hand`) on a device.

    Without a batch size and a width of the model they are those of the benchmark's workload. Smaller ones cost less
    time and hide less of what a step does besides its products: where a CPU does not multiply bf16 in hardware, these
    are 97 % of a step of that workload, and the rest could be twice as slow unseen.

    What it returns has an attribute `items_per_step`: the tokens that a step predicts.
    """
    on = torch.device(device)
    workload = workload_for(on)
    model = replace(workload.model, width=width or workload.model.width)
    workload = replace(workload, model=model, batch_size=batch_size or workload.batch_size)
    return Step(workload.worker(arm, on, workload.batches(on)), arm, workload.tokens)


class Step:
    """A step of an arm, which returns its loss; it looks at its losses once in a while."""

    def __init__(self, worker: TrainingWorker, arm: str, tokens: int) -> None:
        self._worker = worker
        self._arm = arm
        self.items_per_step = tokens

    def __call__(self) -> Tensor:
        """Take a step.

        Raises:
            BenchmarkFailed: a loss is not finite, so that the times of the arm say nothing.
        """
        self._worker.run(1)
        losses = self._worker.losses
        if len(losses) % CHECKED_EVERY == 0 and not torch.stack(losses[-CHECKED_EVERY:]).isfinite().all():
            raise BenchmarkFailed(f"arm {self._arm!r} reached a loss that is not finite: its times say nothing")
        return losses[-1]
