"""A32: a speedup over a float32 that nobody says what it was: with TF32 or without."""

from typing import Any

import torch

from amp_core.benchmark.setup import Plan, Setup
from amp_core.benchmark.suite import run
from amp_core.precision import float32_products, precision_for
from benchmarks.conformance.case import BROKEN, Case, Offers, Result, Subject, verdict

Said = dict[str, str]


def by_ours() -> Said:
    """Return what amp_core's benchmark says of its settings, and what it runs fp32 with."""
    with float32_products("cuda", rounded=True):  # whatever the process was set to
        with precision_for("fp32", "cuda").products():
            pinned = _setting()
        settings = dict(run(Setup.on(torch.device("cpu"), Plan.smoke()), parts={}).settings)
    return {"baseline": settings.get("baseline", ""), "pinned": pinned}


def carelessly() -> Said:
    """Take the process's setting as it is, and say nothing."""
    with float32_products("cuda", rounded=True):
        return {"baseline": "", "pinned": _setting()}


def _setting() -> str:
    matmul: Any = torch.backends.cuda.matmul
    older = "tf32" if not hasattr(matmul, "fp32_precision") and matmul.allow_tf32 else "ieee"  # before torch 2.9
    setting: str = getattr(matmul, "fp32_precision", older)
    return setting


OFFERS = Offers({"amp_core": by_ours, "broken": carelessly}, missing="has no benchmark of its own")


def judge(subject: Subject) -> Result:
    """Ask for the name of the baseline, and whether its matrix products are pinned."""
    said = OFFERS.of(subject)()
    good = "float32_matmul_precision=highest" in said["baseline"] and said["pinned"] == "ieee"
    return verdict(good, f"baseline: {said['baseline'] or 'not named'}; fp32 ran with {said['pinned']!r}")


CASE = Case(
    hazard="A32",
    question="Does the benchmark name its float32 baseline, and pin its matrix products?",
    conforming="the baseline says float32_matmul_precision=highest, whatever the process was set to",
    references=("CUDA-Agent #16", "transformers #15026"),
    judge=judge,
    broken=BROKEN,
)
