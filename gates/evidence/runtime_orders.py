"""The orders that code rules ask for and that can also be judged on what really happened."""

from collections.abc import Iterator, Mapping

from gates.model import Model, Severity
from gates.scan.automata.automaton import MARKERS
from gates.scan.rule import OrderRule, Rule

WORDS = ("forward", "autocast_enter", "autocast_exit", "scaled_backward", "backward", "handed_backward", "unscale",
         "unscale_once", "unscale_by_hand", "clip", "given_grad", "step", "plain_step", "update", "zero_grad",
         "scheduler", "scheduler_set", "uncleared")  # fmt: skip


class RuntimeOrder(Model):
    """An order that must not happen, or that must where there is what it `needs`; `at` is the event of the fault."""

    rule: str
    severity: Severity
    order: str
    demanded: bool = False
    at: tuple[str, ...] = ("last",)
    within_turn: bool = False
    needs: tuple[tuple[str, ...], ...] = ()
    problem: str
    impact: str
    fix: str


UNCLEARED = RuntimeOrder(
    rule="amp-missing-zero-grad", severity=Severity.HIGH, order="uncleared",
    problem="Gradients of the step before are used again, as nothing cleared them.",
    impact="Each step moves by the sum of all gradients since training began.",
    fix="Call optimizer.zero_grad() once for each step.",
)  # fmt: skip


def runtime_orders(known: Mapping[str, Rule]) -> tuple[RuntimeOrder, ...]:
    """Return the orders of the rules that are judged at run time, too; special rules before those that sum them up."""
    rules = [rule for rule in known.values() if rule.form.runtime]
    found = [order for rule in sorted(rules, key=lambda rule: len(rule.never)) for order in _orders(rule)]
    return (*{order.order: order for order in reversed(found)}.values(), UNCLEARED)


def _orders(rule: Rule) -> Iterator[RuntimeOrder]:
    for demanded, orders in ((False, rule.never), (True, rule.always)):
        for one in orders:
            if one.order.names <= {*WORDS, *MARKERS}:  # of what cannot be seen here, nothing may depend
                yield _order(rule, one, demanded=demanded)


def _order(rule: Rule, one: OrderRule, *, demanded: bool) -> RuntimeOrder:
    return RuntimeOrder(
        rule=rule.id, severity=rule.severity, order=one.order.text, demanded=demanded, at=tuple(sorted(one.at)),
        within_turn=rule.form.scope == "iteration", needs=tuple(tuple(sorted(names)) for names in rule.required),
        problem=one.says or rule.form.problem, impact=rule.form.impact, fix=rule.form.fix,
    )  # fmt: skip
