"""The tests' models are tiny: one CPU thread is as fast as many, and does not suffer on a shared machine."""

import torch

torch.set_num_threads(1)
