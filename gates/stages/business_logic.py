"""Stage 2, business logic: is each criterion traced to live code that its tests run, and does that code do right?"""

from gates.check import discover
from gates.stages._part import in_order
from gates.stages.gate import Gate

NAME = "business-logic"
GATE = Gate(
    name=NAME, title="Business Logic Verification", stage=2, weight=30, code="BL",
    checks=in_order(NAME, (), discover()),
)  # fmt: skip
