"""A little project, an honest report on it in the style of the field, and what a run of it was seen to do."""

from pathlib import Path

from building import a_record, a_run, evidence, written

from gates.check import EvidenceSet
from gates.claims import Claim, Sources, Standing
from gates.commands import audit
from gates.evidence.tests.test_records import TestOutcome

STEP = '''\
"""One step of the training."""

import torch


def compute_precision(use_amp: bool, cuda: bool) -> str:
    """Return the precision that is really used."""
    if use_amp and cuda:
        return "16"
    return "32"


class Trainer:
    """Runs the loop."""

    def training_step(self, batch, scaler, optimizer):
        """Do one step."""
        batch = batch.to(self.device, non_blocking=True)
        grad_norm = self.clip(
            batch,
            limit=1.0,
        )
        if torch.isfinite(grad_norm):
            scaler.step(optimizer)
        else:
            self.log("train/overflow", 1.0)  # counted, not applied
        scaler.update()
'''
REPORT = """\
# Execution Verification Report - T1 (Doubling) v3

**Stage**: 2 (Execution Verification)
**Duration**: 1.1s (test execution)

## Executive Summary

**Score**: 70/100

The test suite passes with 4/6 tests passing (2 skipped due to no CUDA).

## Test Execution Results

**Command**: `pytest tests -v`
**Exit Code**: 0
**Results**: 4 passed, 2 skipped, 1 warning in 1.10s

#### Passed Tests (4)
1. TestPrecision::test_cuda - PASS
2. TestPrecision::test_cpu - PASS
3. test_overflow - PASS
4. test_update - PASS

#### Skipped Tests (2)
1. TestGpu::test_autocast - SKIPPED (CUDA not available)
2. TestGpu::test_scaler - SKIPPED (CUDA not available)

## Code Analysis

### pkg/step.py (Lines 6-26)

- Precision: `compute_precision()` (lines 6-10)
- The transfer does not block (line 18: `batch.to(self.device, non_blocking=True)`)
- The loop is run by `Trainer` (lines 13-26)

**Location**: `pkg/step.py:23-26`
```python
if torch.isfinite(grad_norm):
    scaler.step(optimizer)
else:
    self.log('train/overflow', 1.0)
```

**Clipping** (step.py:19-22):
```python
grad_norm = self.clip(batch, limit=1.0)
```

## Performance

- Speedup: **2.0x** on cpu
- The promised target is a speedup of 3x.

## Coverage

Requirements verified: 6/8 (75%)

| File | Statements | Missed |
|---|---|---|
| pkg/step.py | 20 | 5 |
| pkg/data.py | 12 | 0 |
| **Total** | **32** | **5** |

## Score Breakdown

- Tests: 40/40
- Code quality: 40/50 (one function is long)
- Coverage: 0/10
- Missing GPU run: -10

**Final Score: 70/100**
"""
NAMES = {
    "tests/test_step.py::TestPrecision::test_cuda": TestOutcome.PASSED,
    "tests/test_step.py::TestPrecision::test_cpu": TestOutcome.PASSED,
    "tests/test_step.py::test_overflow": TestOutcome.PASSED,
    "tests/test_step.py::test_update": TestOutcome.PASSED,
    "tests/test_gpu.py::TestGpu::test_autocast": TestOutcome.SKIPPED,
    "tests/test_gpu.py::TestGpu::test_scaler": TestOutcome.SKIPPED,
}


def a_reported_project(folder: Path) -> Path:
    """The files that the report speaks of."""
    return written(folder, {"pkg/step.py": STEP, "pkg/data.py": "ROWS = 12\n", "tests/test_step.py": "X = 1\n"})


def seen() -> EvidenceSet:
    """What a run of the project showed: six tests."""
    return evidence(a_run(*(a_record(outcome, id=name) for name, outcome in NAMES.items())))


def audited(text: str, project: Path, found: EvidenceSet | None = None) -> list[Claim]:
    """Every claim of a page, with what was seen of it."""
    return [*audit.audited(text, Sources(project), found or EvidenceSet()).claims]


def contradicted(text: str, project: Path, found: EvidenceSet | None = None) -> list[Claim]:
    """The claims of a page that are contradicted."""
    return [one for one in audited(text, project, found) if one.standing is Standing.CONTRADICTED]


def not_understood(text: str, project: Path, found: EvidenceSet | None = None) -> list[int]:
    """The line of every number of a page that was not understood."""
    return [*audit.audited(text, Sources(project), found or EvidenceSet()).left]
