"""Probes that look at a model or a training step, anyone's, without changing what it computes."""

from amp_audit.casting import Dtypes, OpDtypes, Phase, dtypes
from amp_audit.integrity import GradientError, Integrity, gradient_integrity
from amp_audit.ledger import Peak
from amp_audit.overflow import Loop, Overflow, inject_overflow
from amp_audit.peak import Unpredictable, predict_peak
from amp_audit.policy import cuda_autocast
from amp_audit.reading import HostRead, HostReads, host_reads
from amp_audit.saving import saved_bytes

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
