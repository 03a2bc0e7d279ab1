"""Stage 2, execution: did the tests run to their end and pass, and does the production code run?"""

from gates.stages.gate import Gate, checks_of

NAME = "execution"
GATE = Gate(
    name=NAME, title="Execution Verification", stage=2, weight=40, code="EX", checks=checks_of(NAME),
)  # fmt: skip
