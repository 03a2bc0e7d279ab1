"""Mixed precision measured against float32: steps, memory and quality, as raw samples.

`python -m amp_core.benchmark --help` measures; `suite.run` is what it calls.
"""
