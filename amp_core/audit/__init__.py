"""Probes that look at a model or a training step, anyone's, without changing what it computes."""

from amp_core.audit.casting import Dtypes, OpDtypes, Phase, dtypes
from amp_core.audit.integrity import GradientError, Integrity, gradient_integrity
from amp_core.audit.ledger import Peak
from amp_core.audit.overflow import Loop, Overflow, inject_overflow
from amp_core.audit.peak import Unpredictable, predict_peak
from amp_core.audit.policy import cuda_autocast
from amp_core.audit.reading import HostRead, HostReads, host_reads
from amp_core.audit.saving import saved_bytes

__all__ = [
    "Dtypes",
    "GradientError",
    "HostRead",
    "HostReads",
    "Integrity",
    "Loop",
    "OpDtypes",
    "Overflow",
    "Peak",
    "Phase",
    "Unpredictable",
    "cuda_autocast",
    "dtypes",
    "gradient_integrity",
    "host_reads",
    "inject_overflow",
    "predict_peak",
    "saved_bytes",
]
