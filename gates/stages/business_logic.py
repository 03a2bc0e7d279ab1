"""Stage 2, business logic: is each criterion traced to live code that its tests run, and does that code do right?"""

from gates.stages.gate import Gate, checks_of

NAME = "business-logic"
GATE = Gate(
    name=NAME, title="Business Logic Verification", stage=2, weight=30, code="BL",
    checks=checks_of(NAME),
)  # fmt: skip
