"""The one warning that is left of a tracking service that breaks: training goes on."""

import warnings


def report(name: str, verb: str, error: Exception) -> None:
    """Warn, in one line and by its name, that a service could not do something."""
    reason = str(error).partition("\n")[0]
    warnings.warn(
        f"{name} could not {verb} ({type(error).__name__}: {reason}): training goes on without it", stacklevel=3
    )
