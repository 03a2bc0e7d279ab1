"""Stage 2, execution: did the tests run to their end and pass, and does the production code run?"""

from gates.check import discover
from gates.stages._part import in_order
from gates.stages.gate import Gate

NAME = "execution"
GATE = Gate(
    name=NAME, title="Execution Verification", stage=2, weight=40, code="EX", checks=in_order(NAME, (), discover()),
)  # fmt: skip
