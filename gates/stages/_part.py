"""Parts of a gate that have no folder in `gates/checks/` yet."""

from collections.abc import Iterable
from types import ModuleType

from gates.check import Check, Evidence
from gates.model import Basis, Row


def part(
    gate: str, order: int, module: ModuleType, *uses: type[Evidence], basis: Basis = Basis.OBSERVED,
    row: Row | None = None, label: str = "",
) -> Check:  # fmt: skip
    """Return a part as the check that it will be."""
    return Check(
        name=module.__name__.rpartition(".")[2].strip("_"),
        gate=gate, order=order, rules=module.RULES, uses=uses, plan=module.plan, judge=module.judge,
        page=module.describe, basis=basis, row=row, label=label,
    )  # fmt: skip


def in_order(gate: str, parts: Iterable[Check], found: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks of a gate, those of the folders among the parts, by their places."""
    own = (*parts, *(check for check in found if check.gate == gate))
    return tuple(sorted(own, key=lambda check: check.order))
