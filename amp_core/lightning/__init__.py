"""Mixed precision for Lightning's Trainer: a precision plugin on this package's scaler, and a callback that reports."""

from importlib.util import find_spec

if find_spec("lightning") is None:
    raise ImportError("amp_core.lightning needs Lightning: pip install 'amp-gates[lightning]'")

from amp_core.lightning.callback import AmpCallback
from amp_core.lightning.plugin import AmpPrecision

__all__ = ["AmpCallback", "AmpPrecision"]
