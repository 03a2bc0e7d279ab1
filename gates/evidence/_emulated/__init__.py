"""Runs tests on an emulated CUDA device, which is the CPU; stands alone (torch, pytest and the standard library)."""
