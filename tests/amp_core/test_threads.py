"""Several trainers, and a tracker that they share, in the threads of one process."""

import threading
from collections.abc import Callable

import torch

from amp_core.trainer import TrainConfig, build_model, digest
from examples.t035.rehearsal import log_step, logged_steps, shared_tracker


def at_once(*works: Callable[[], None]) -> None:
    """Do all of this at once, and wait for it."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def test_weights_come_from_the_seed_whatever_another_thread_draws() -> None:
    def draw(seed: int) -> str:
        return digest(build_model(TrainConfig(seed=seed), torch.device("cpu")))

    alone = {seed: draw(seed) for seed in range(4)}
    found: dict[int, set[str]] = {seed: set() for seed in range(4)}

    def again(seed: int) -> None:
        for _ in range(5):
            found[seed].add(draw(seed))

    at_once(*(lambda seed=seed: again(seed) for seed in range(4)))
    assert found == {seed: {alone[seed]} for seed in range(4)}


def test_tracker_that_threads_share_counts_and_writes_each_step_once() -> None:
    tracker = shared_tracker()

    def log(first: int) -> None:
        for number in range(first, first + 50):
            log_step(tracker, number)

    at_once(*(lambda first=first: log(first) for first in (0, 50, 100, 150)))
    assert tracker.step == 200
    assert logged_steps(tracker) == [*map(float, range(200)), *map(float, range(200))]
