"""Stage 2, business logic: is each criterion traced to live code that its tests run, and does that code do right?"""

from gates.check import discover
from gates.evidence.recorded_tests import RecordedTests
from gates.evidence.recording import Recording
from gates.model import Basis, Row
from gates.stages import (
    _commands,
    _recorded,
    _recorded_tests,
    _rules,
    _waivers,
)
from gates.stages._part import in_order, part
from gates.stages.gate import Gate

NAME = "business-logic"
PARTS = (
    part(NAME, 40, _commands),
    part(NAME, 50, _rules, basis=Basis.READ),
    part(NAME, 60, _waivers, basis=Basis.DECLARED),
    part(NAME, 80, _recorded, Recording, row=Row.TEST, label="recorded run"),
    part(NAME, 90, _recorded_tests, RecordedTests, row=Row.TEST, label="recorded run"),
)

GATE = Gate(
    name=NAME, title="Business Logic Verification", stage=2, weight=30, code="BL",
    checks=in_order(NAME, PARTS, discover()),
)  # fmt: skip
