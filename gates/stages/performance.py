"""Stage 4, performance: was every number that a criterion demands measured, and does its interval meet the target?"""

from gates.stages.gate import Gate, checks_of

NAME = "performance"
GATE = Gate(
    name=NAME, title="Performance Verification", stage=4, weight=30, code="PF", checks=checks_of(NAME),
    nothing_asked=("PF001", "The task sets no performance target."),
)  # fmt: skip
