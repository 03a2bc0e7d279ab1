"""Tries a property of a function on inputs that hypothesis makes, in the project's interpreter."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice, product
from json import dumps
from time import monotonic
from typing import Any, NoReturn

from . import whole
from .calling import Target, Unreachable, brief, built, raised, resolve, run_to_end
from .likeness import DOUBLE, Unseen, differences, kind_of, numbers_in
from .values import encode, shown

FACTORS = (0.5, 2.0, 3.0, 10.0)
CORNERS = 9
WHOLE_S = 20.0  # at most, and half of what the call may take
TINY = 1e-6  # of the largest number of a domain, or of 1: what is nearer to 0 is 0


class Broken(Exception):
    """A property does not hold for an input."""


class Trial:
    """A function under trial: calls it on inputs, and compares what it gives."""

    def __init__(self, target: Target, asked: dict[str, Any]) -> None:
        self.name = target.name
        self.asked = asked
        self.places = [self._place(name) for name in asked["in"]]
        self.broken: dict[str, Any] = {}
        self.stopped = ""
        self.kind = DOUBLE
        self._target = target
        self._seen: set[str] = set()

    @property
    def tried(self) -> int:
        """Return how many different inputs the property was seen to hold for."""
        return len(self._seen)

    def seen(self, instead: set[str] | None = None) -> set[str]:
        """Return the inputs that the property was seen to hold for, after what is known of them was taken back."""
        self._seen = self._seen if instead is None else instead
        return {*self._seen}

    def held(self, inputs: Sequence[Any]) -> None:
        """Note that the property held for some inputs."""
        self._seen.add(dumps(inputs))

    def give(self, inputs: Sequence[Any]) -> Any:  # noqa: ANN401  # anything
        """Call the function and return what it gives, as it is."""
        return self._target.taken(self._run(self._target.bound(), self.values(inputs), inputs, self._target.takes))

    def written(self, inputs: Sequence[Any]) -> Any:  # noqa: ANN401  # JSON
        """Call the function and return what it gives, encoded."""
        given = encode(self.give(inputs))
        self.kind = max(self.kind, kind_of(given))
        return given

    def other(self, inputs: Sequence[Any], values: list[Any]) -> Any:  # noqa: ANN401  # anything
        """Call the function that the property names under `with`."""
        found = resolve(self.asked["with"])[1] if self.asked["with"] else self._target.bound()
        return self._run(found, values, inputs)

    def values(self, inputs: Sequence[Any]) -> list[Any]:
        """Return fresh arguments for inputs."""
        return [made(domain, value) for domain, value in zip(self.asked["over"], inputs, strict=True)]

    def differ(self, expected: Any, actual: Any, *, scale: float | None = None) -> str:  # noqa: ANN401  # JSON
        """Return where one value is unlike another, beyond what rounding makes of numbers of a size, or nothing."""
        asked = self.asked
        found = differences(
            expected, actual, tolerance=asked["tolerance"], relative=asked["relative"],
            scale=scale or self.scale, least=self.kind,
        )  # fmt: skip
        certain = [text for text in found if not isinstance(text, Unseen)]
        if found and not certain:
            raise Unreachable(f"what it gives cannot be compared: {found[0]}")
        return "; ".join(certain[:3])

    @cached_property
    def scale(self) -> float:
        """Return the size of what the function gives, by what it gives for the corners of its domains."""
        sizes = [0.0]
        for inputs in islice(product(*map(_ends, self.asked["over"])), CORNERS):
            with suppress(Exception):  # what it does there is seen when it is tried
                args, kwargs = self._arguments(self.values(inputs))
                returned = run_to_end(self._target.bound()(*args, **kwargs), self._target.takes)
                given = encode(self._target.taken(returned))
                self.kind = max(self.kind, kind_of(given))
                sizes += [abs(float(found)) for found in numbers_in(given)]
        return max(size for size in sizes if math.isfinite(size))

    @property
    def reach(self) -> float:
        """Return the largest number of the domain that the property speaks of."""
        return reach(self.asked["over"][self.places[0]])

    def told(self, inputs: Sequence[Any]) -> str:
        """Return a call with inputs, in words."""
        named = [
            (f"{domain['name']}=" if domain["name"] else "") + shown(value, 80)
            for domain, value in zip(self.asked["over"], inputs, strict=True)
        ]
        return f"{self.name}({', '.join(named)})"

    def _arguments(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        names = [domain["name"] for domain in self.asked["over"]]
        args = [value for value, name in zip(values, names, strict=True) if not name]
        return args, {name: value for value, name in zip(values, names, strict=True) if name}

    def _run(self, function: Any, values: list[Any], inputs: Sequence[Any], take: str = "") -> Any:  # noqa: ANN401
        args, kwargs = self._arguments(values)
        try:
            return run_to_end(function(*args, **kwargs), take)
        except BaseException as error:
            told = raised(error)
            if set(told["error"]) & set(self.asked["rejects"]):
                raise Rejected from error
            self.fail(inputs, f"{self.told(inputs)} raised {brief(error)}", **told)

    def fail(self, inputs: Sequence[Any], seen: str, **told: Any) -> NoReturn:  # noqa: ANN401  # JSON
        """Note an input for which the property does not hold."""
        self.broken = {"input": self.told(inputs), "seen": seen, **told}
        raise Broken(seen)

    def _place(self, name: int | str) -> int:
        over = self.asked["over"]
        for i, domain in enumerate(over):
            if name in (i, domain["name"] or None):
                return i
        raise Unreachable(f"'in' names the argument {name!r}, and 'over' has no such")


class Rejected(Exception):
    """The function refuses an input, as the property says it may."""


def made(domain: dict[str, Any], value: Any) -> Any:  # noqa: ANN401  # anything
    """Return the argument that an input of a domain stands for."""
    value = built(value)
    return resolve(domain["as"])[1](value) if domain["as"] else value


def tried(target: Target, asked: dict[str, Any]) -> dict[str, Any]:
    """Try a property on as many examples as asked for, and tell how that ended."""
    try:
        import hypothesis
        from hypothesis import strategies as st
    except ImportError:
        return {"problem": "hypothesis is not installed", "install": "hypothesis"}
    from .laws import LAWS

    begun, trial = monotonic(), Trial(target, asked)
    extra, holds = LAWS[asked["property"]]
    more = {
        "none": st.none(),
        "other": _inputs(st, asked["over"][trial.places[0]]),
        "factor": st.sampled_from(FACTORS),
        "order": st.integers(0, 999),
    }

    once = _trying(trial, holds, resolve(asked["given"])[1] if asked["given"] else None)

    def drawn_once(drawn: Any) -> None:  # noqa: ANN401  # inputs, and what the law draws
        if not once(drawn):
            hypothesis.reject()

    drawn = st.tuples(st.tuples(*(_inputs(st, domain) for domain in asked["over"])), more[extra])
    kind, told = trial.kind, _searched(hypothesis, drawn, drawn_once, trial)
    if "broken" in told and trial.kind != kind:  # it was found on the way that the numbers are less exact
        told = _searched(hypothesis, drawn, drawn_once, trial)
    if ("held" in told or "vacuous" in told) and extra in whole.EXTRAS:
        kind, limit = trial.kind, begun + min(WHOLE_S, asked["limit_s"] / 2)
        sampled, told = told, _on_all(told, once, trial, limit, pairs=extra == "other")
        if "broken" in told and trial.kind != kind:
            told = _on_all(sampled, once, trial, limit, pairs=extra == "other")
    return told


def _trying(trial: Trial, holds: Any, wanted: Any) -> Callable[[Any], bool]:  # noqa: ANN401  # functions
    """Return what tries a property on one input, and tells whether that says something of it."""

    def once(drawn: tuple[Sequence[Any], Any]) -> bool:
        inputs = list(drawn[0])
        try:
            if (wanted is None or wanted(*trial.values(inputs))) and holds(trial, inputs, drawn[1]) is not False:
                trial.held(inputs)
                return True
        except Rejected:
            pass
        except Exception as error:
            trial.stopped = brief(error)
            raise
        return False

    return once


def _on_all(told: dict[str, Any], once: Callable[[Any], bool], trial: Trial, limit: float, *, pairs: bool) -> Any:  # noqa: ANN401
    """Try a property on all inputs of a small domain; where that takes too long, what was told before stands."""
    over = trial.asked["over"]
    other = [over[trial.places[0]]] if pairs else []
    tries = whole.count(over) * (whole.count(other) if pairs else 1)
    if not 0 < tries <= whole.MOST_TRIES:
        return told
    before, number = trial.seen(), 0
    for inputs in whole.every(over):
        number += 1
        for extra in whole.every(other) if pairs else [[None]]:
            if monotonic() > limit:
                trial.seen(before)
                return told
            try:
                once((inputs, extra[0]))
            except Broken:
                return {"broken": trial.broken, "tried": trial.tried}
    return {"held": True, "tried": trial.tried, "whole": number} if trial.tried else told


def _searched(hypothesis: Any, drawn: Any, once: Callable[[Any], None], trial: Trial) -> dict[str, Any]:  # noqa: ANN401
    """Let hypothesis look for an input that breaks a property."""
    errors = hypothesis.errors
    settings = hypothesis.settings(
        max_examples=trial.asked["examples"], derandomize=True, database=None, deadline=None, print_blob=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink), report_multiple_bugs=False,
        suppress_health_check=(hypothesis.HealthCheck.too_slow,),
    )  # fmt: skip
    trial.broken, trial.stopped = {}, ""
    try:
        settings(hypothesis.given(drawn)(once))()
    except Broken:
        return {"broken": trial.broken, "tried": trial.tried}
    except errors.Flaky as error:
        if trial.broken:
            return {"broken": {**trial.broken, "flaky": True}, "tried": trial.tried}
        why = trial.stopped or brief(error).partition("\n")[0]  # no input was seen for which it does not hold
        return {"problem": f"what it does is not the same every time: {why}"}
    except (errors.Unsatisfiable, errors.FailedHealthCheck) as error:
        return {"vacuous": brief(error).partition(". ")[0], "tried": trial.tried}
    return {"held": True, "tried": trial.tried}


def _inputs(st: Any, domain: dict[str, Any]) -> Any:  # noqa: ANN401  # a module and a strategy of hypothesis
    """Return the strategy of a domain; what it makes is JSON."""
    if domain["floats"]:
        least, most = domain["floats"]
        tiny = TINY * min(1.0, reach(domain)) if least <= 0 <= most else 0.0
        numbers = st.floats(least, most, allow_nan=False, allow_infinity=False)
        return numbers.map(lambda value: value if abs(value) >= tiny else 0.0)
    if domain["integers"]:
        return st.integers(*domain["integers"])
    if domain["booleans"]:
        return st.booleans()
    least, most = domain["size"] or (0, 10)
    if domain["text"]:
        return st.text(min_size=least, max_size=most)
    if domain["lists"]:
        return st.lists(_inputs(st, domain["lists"]), min_size=least, max_size=most)
    return st.sampled_from(domain["values"])


def _ends(domain: dict[str, Any]) -> list[Any]:
    """Return the inputs at the ends of a domain."""
    if domain["lists"]:
        size = (domain["size"] or (0, 10))[1]
        first, *_, last = _ends(domain["lists"])
        return [[first, last] * (size // 2) + [first] * (size % 2), [last] * size, [first] * size]
    if domain["values"]:
        return [domain["values"][0], domain["values"][-1]]
    return [*(domain["floats"] or domain["integers"] or ([False, True] if domain["booleans"] else ["", "x"]))]


def reach(domain: dict[str, Any]) -> float:
    """Return the largest number of a domain."""
    sizes = [abs(float(found)) for found in numbers_in(domain["values"] or _ends(domain))]
    return max((size for size in sizes if math.isfinite(size)), default=0.0)
