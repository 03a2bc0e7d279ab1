"""How data reach the device: loaders, and a stream that resumes at any batch."""

from amp_core.data.loading import loader, loader_options
from amp_core.data.order import EpochOrder
from amp_core.data.stream import Stream, windows
from amp_core.data.transfer import samples_in, to_device

__all__ = ["EpochOrder", "Stream", "loader", "loader_options", "samples_in", "to_device", "windows"]
