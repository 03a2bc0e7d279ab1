"""What the project's harness called the canaries, tests of ours of which it is known how they end."""

from collections.abc import Iterator

from gates.evidence.test_records import Event

MUST = {"passes": "passed", "fails": "failed", "compares": "failed", "tolerates": "failed", "expects": "failed"}
WHAT = {
    "passes": "asserts 1 + 1 == 2",
    "fails": "asserts 1 + 1 == 3",
    "compares": "asserts 1 + 1 == 3 by unittest",
    "tolerates": "asserts that 1 is 2 by approx, isclose, numpy or torch",
    "expects": "expects an exception that does not come",
}


def rigged(events: list[Event]) -> Iterator[str]:
    """Say of each canary that was called what it is not who said what; one that could not be run says nothing."""
    seen = set()
    for event in events:
        for said in event["said"] if event["event"] == "canaries" else ():
            text = _contradiction(said)
            if text and not said["unable"] and text not in seen:
                seen.add(text)
                yield f"{text} ({event['when']} the tests)"


def _contradiction(said: Event) -> str:
    name, called, raised, ended = said["id"], said["called"], said["raised"], said["ended"]
    test = f"a test of ours that {WHAT[name]}"
    if not ended and not raised:  # nobody called it
        return f"{test} was never run, and the harness called it {called}" if called == "passed" else ""
    if ended is (MUST[name] == "passed") and called == MUST[name]:
        return ""
    if name == "passes" and ended and said["seen"]:
        return ""  # a hook of the project wants more of a test than ours has
    how = "ended well" if ended else f"raised {raised}"
    return f"{test} {how}, and the harness called it {called}"
