"""Stage 4, performance: was every number that a criterion demands measured, and does its interval meet the target?"""

from gates.check import discover
from gates.evidence.bundles import Bundles
from gates.evidence.measurements import Measurements
from gates.evidence.past_runs import PastRuns
from gates.evidence.regressions import Regressions
from gates.model import Row
from gates.stages import _bundles, _machine, _not_asked, _past_runs, _regressions, _targets
from gates.stages._part import in_order, part
from gates.stages.gate import Gate

NAME = "performance"
PARTS = (
    part(NAME, 10, _targets, Measurements, row=Row.MEASURE),
    part(NAME, 60, _regressions, Regressions, row=Row.MEASURE),
    part(NAME, 70, _past_runs, PastRuns),
    part(NAME, 80, _bundles, Bundles),
    part(NAME, 90, _machine),
    part(NAME, 100, _not_asked),
)

GATE = Gate(
    name=NAME, title="Performance Verification", stage=4, weight=30, code="PF",
    checks=in_order(NAME, PARTS, discover()), nothing_asked=("PF001", "The task sets no performance target."),
)  # fmt: skip
