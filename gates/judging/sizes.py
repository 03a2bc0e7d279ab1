"""Numbers of bytes and other things in words."""

UNITS = ("B", "KB", "MB", "GB", "TB")
STEP = 1024
LARGE = 1000


def shown(value: float, unit: str) -> str:
    """Return a number with its unit, bytes in the largest one that keeps it above 1."""
    if unit != "bytes":
        return f"{value:.3g} {unit}"
    size, power = abs(value), 0
    while size >= STEP and power < len(UNITS) - 1:
        size, power = size / STEP, power + 1
    digits = f"{size:.0f}" if size >= LARGE else f"{size:.3g}"
    return f"{'-' if value < 0 else ''}{digits} {UNITS[power]}"
