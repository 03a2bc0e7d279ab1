"""The gates that every task goes through: labels with a place, and the checks that belong to them."""

from gates.stages.gate import Gate, checks_of

EXECUTION = Gate("execution", "Execution Verification", stage=2, weight=40, code="EX", checks=checks_of("execution"))
BUSINESS_LOGIC = Gate(
    "business-logic", "Business Logic Verification", stage=2, weight=30, code="BL", checks=checks_of("business-logic")
)
PERFORMANCE = Gate(
    "performance", "Performance Verification", stage=4, weight=30, code="PF", checks=checks_of("performance"),
    nothing_asked=("PF001", "The task sets no performance target."),
)  # fmt: skip
