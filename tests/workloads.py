"""The smallest training that a benchmark of tests takes steps of."""

from amp_core.benchmark.workload import Workload
from amp_core.model import GPTConfig

SMALL = Workload(GPTConfig(vocab_size=8, context=4, layers=1, heads=1, width=8), batch_size=2)
