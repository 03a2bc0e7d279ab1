"""How many there are of something, in words."""


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as `1 test` or `2 tests`."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"
