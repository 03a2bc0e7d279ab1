"""What a test had in the place of the code that criteria are traced to."""

from enum import StrEnum

from gates.model import Model


class Instead(StrEnum):
    """Other code than the file's under its name, another object in its place, or another value of what it reads.

    A constant is a number, a text, a path or a tuple of these that was put back after the tests.
    """

    CODE = "code"
    OBJECT = "object"
    VALUE = "value"
    CONSTANT = "constant"


class StandIn(Model):
    """A function (`path:name`), the first line of its definition, and by what a test had it replaced or changed."""

    name: str
    line: int
    kind: Instead
    by: str = ""
    constants: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Return the file that defines the function."""
        return self.name.rpartition(":")[0]
