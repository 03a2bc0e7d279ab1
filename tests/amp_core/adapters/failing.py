"""A run of which one rank fails while the others wait for it; torchrun starts it."""

from torch import distributed

from amp_core.parallel import world

if __name__ == "__main__":
    with world("cpu", timeout_s=60.0) as rank:
        if rank.index == 1:
            raise ValueError("a batch that nobody can read")
        distributed.barrier()
