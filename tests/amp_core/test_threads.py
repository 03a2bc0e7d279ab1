"""Several trainers, and a tracker that they share, in the threads of one process."""

from concurrent.futures import ThreadPoolExecutor

import torch

from examples.t035.rehearsal import log_step, logged_steps, shared_tracker
from examples.t035.trainer import TrainConfig, build_model, digest


def test_weights_come_from_the_seed_whatever_another_thread_draws() -> None:
    def draw(seed: int) -> str:
        return digest(build_model(TrainConfig(seed=seed), torch.device("cpu")))

    alone = [{draw(seed)} for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda seed: {draw(seed) for _ in range(5)}, range(4))) == alone


def test_tracker_that_threads_share_counts_and_writes_each_step_once() -> None:
    tracker = shared_tracker()

    def log(first: int) -> None:
        for number in range(first, first + 50):
            log_step(tracker, number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(log, (0, 50, 100, 150)))
    assert tracker.step == 200
    assert logged_steps(tracker) == [*map(float, range(200)), *map(float, range(200))]
