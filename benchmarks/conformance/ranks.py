"""The cases of several processes: two ranks started by torchrun, and what each of them saw.

`seen_by_ranks` runs `torchrun --nproc-per-node 2 -m benchmarks.conformance.ranks FOLDER SUBJECT...`, once a subject;
the two that are trained with torch alone share a launch.
"""

import functools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from benchmarks.conformance.case import NotApplicableError, Subject, described, hushed
from benchmarks.conformance.job import INF, Job, Seen, Window, a_batch, plain_sgd, windows

RANKS = 2
LIMIT_S = 120
SCALE = 1024.0  # low enough that no gradient overflows by itself


def overflow(rank: int, ranks: int) -> Job:
    """Return four windows in fp16, the second of which overflows on rank 1 alone."""
    spoiled = {1: INF} if rank == 1 else {}
    return Job(windows=windows(4, bad=spoiled), clip=1.0, ranks=ranks, init_scale=SCALE, optimizers=plain_sgd)


def accumulation(rank: int, ranks: int) -> Job:
    """Return two windows of three micro-batches in fp32, other ones on each rank."""
    return Job(windows=(micro(0, rank), micro(1, rank)), precision="fp32", ranks=ranks, optimizers=plain_sgd)


def micro(index: int, rank: int) -> Window:
    """Return a rank's micro-batches of a window."""
    return tuple(a_batch(100 * rank + 10 * index + each) for each in range(3))


TOGETHER = ("amp_core", "broken")  # they leave no state of a library in their process
JOBS: dict[str, Callable[[int, int], Job]] = {
    "overflow": overflow,
    "sharded": lambda rank, ranks: replace(overflow(rank, ranks), sharded=True),
    "accumulation": accumulation,
}


def seen_by_ranks(subject: Subject, job: str) -> tuple[list[Seen], ...]:
    """Return what each rank of a subject saw after each window of a job.

    Raises:
        NotApplicableError: the subject has no way to do it.
        RuntimeError: a rank failed.
    """
    names = TOGETHER if subject.name in TOGETHER else (subject.name,)
    return tuple(_read(seen[subject.name][job]) for seen in _launched(*names))


def _read(found: Any) -> list[Seen]:  # noqa: ANN401  as it came from the rank's file
    if isinstance(found, str):
        kind, _, reason = found.partition(" ")
        raise NotApplicableError(reason) if kind == "without" else RuntimeError(reason)
    return [Seen(**fields) for fields in found]


@functools.cache
def _launched(*names: str) -> tuple[dict[str, dict[str, object]], ...]:
    """Run every job on two ranks of some subjects, once."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(RANKS), "-m", __name__, folder, *names]
        root = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"the ranks ended with {done.returncode}: {cause(done.stderr)}")
        return tuple(torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(RANKS))


def cause(stderr: str) -> str:
    """Return the first exception that a rank wrote, before torchrun's own report of it; else the last line."""
    named = re.search(r"^(?:\[rank\d+\]: ?)?([\w.]+(?:Error|Exception|Interrupt)\b.*)$", stderr, re.MULTILINE)
    return named[1] if named else (stderr.strip().splitlines() or ["it wrote nothing"])[-1]


def main(folder: str, *names: str) -> None:
    """Do every job on this rank, and write down what was seen."""
    from benchmarks.conformance.subjects.torch_by_hand import UNWRAPPED
    from benchmarks.conformance.suite import discover_subjects

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=30))
    subjects = {each.name: each for each in (*discover_subjects(), UNWRAPPED)}
    found = {name: _trained(subjects[name], rank, ranks) for name in names}
    torch.save(found, Path(folder) / f"{rank}.pt")
    torch.distributed.barrier()  # nobody takes the group down while another still uses it
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # all is written; in about 1 of 12 launches torch 2.13 aborts while the interpreter ends, cause unknown


def _trained(subject: Subject, rank: int, ranks: int) -> dict[str, object]:
    """Do every job on this rank."""
    found: dict[str, object] = {}
    for job, build in JOBS.items():
        try:
            with hushed():
                found[job] = [asdict(seen) for seen in subject.train(build(rank, ranks)).steps]
        except NotApplicableError as reason:
            found[job] = f"without {reason}"
        except Exception as error:  # noqa: BLE001  a library of others may raise anything; the case shows it
            found[job] = f"error {described(error)}"
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
