"""How a criterion is bound to the code that implements it: by symbol, by pattern or by code rule."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from gates.scan.patterns.pattern import Pattern, PatternError
from gates.task.types import InsidePath, Located, Name, Text


def _pattern(text: str) -> str:
    try:
        Pattern.parse(text)
    except PatternError as error:
        raise ValueError(f"{error}, in the pattern {text!r:.80}") from error
    return text


Symbol = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")]
Used = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*(:[^\W\d][\w.]*)?$")]


class CodeBinding(Located):
    """The code that implements a criterion: a symbol, a pattern, or a code rule.

    `uses` are names that live code of the symbol must use, as its module writes them, or as `module:name`. A pattern
    must fit live code of the implementation, or of the file or folder `in`, in `at_least` so many places.
    `reached_from` is a symbol that this code must run with in a test.
    """

    symbol: Symbol | None = None
    uses: tuple[Used, ...] = ()
    rule: Name | None = None
    pattern: Annotated[Text, AfterValidator(_pattern)] | None = None
    in_: InsidePath | None = Field(default=None, alias="in")
    at_least: int = Field(default=1, ge=1)
    reached_from: Symbol | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(part is not None for part in (self.symbol, self.rule, self.pattern)) != 1:
            raise ValueError("expected exactly one of 'symbol', 'pattern' and 'rule'")
        if self.uses and not self.symbol:
            raise ValueError("'uses' goes with 'symbol'")
        for key, given in (("in", self.in_ is not None), ("at_least", self.at_least > 1)):
            if given and not self.pattern:
                raise ValueError(f"{key!r} goes with 'pattern'")
        return self

    @property
    def name(self) -> str:
        """Return what the binding is called in reports."""
        if self.pattern:
            return f"pattern {self.pattern}" + (f" in {self.in_}" if self.in_ else "")
        return self.symbol or f"rule {self.rule}"
