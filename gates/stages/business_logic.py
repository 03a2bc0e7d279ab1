"""Stage 2, business logic: is each criterion traced to live code that its tests run, and does that code do right?"""

from gates.check import discover
from gates.evidence.calculations import Calculations
from gates.evidence.called_code import CalledCode
from gates.evidence.code_rules import CodeRules
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.goalposts import Goalposts
from gates.evidence.known_criteria import KnownCriteria
from gates.evidence.proof import LastProof
from gates.evidence.pytest_run import PytestRun
from gates.evidence.recorded_tests import RecordedTests
from gates.evidence.recording import Recording
from gates.evidence.source_tree import SourceTree
from gates.model import Basis, Row
from gates.proving.emptied_code import EmptiedCode
from gates.stages import (
    _calculations,
    _commands,
    _criteria,
    _data_integrity,
    _goalposts,
    _loose_ends,
    _proof,
    _recorded,
    _recorded_tests,
    _rules,
    _waivers,
)
from gates.stages._part import in_order, part
from gates.stages.gate import Gate

NAME = "business-logic"
PARTS = (
    part(NAME, 10, _criteria, SourceTree, CodeRules, PytestRun, ExecutedLines, CalledCode, EmptiedCode, KnownCriteria),
    part(NAME, 20, _loose_ends),
    part(NAME, 40, _commands),
    part(NAME, 50, _rules, basis=Basis.READ),
    part(NAME, 60, _waivers, basis=Basis.DECLARED),
    part(NAME, 70, _calculations, Calculations, row=Row.TEST),
    part(NAME, 80, _recorded, Recording, row=Row.TEST, label="recorded run"),
    part(NAME, 90, _recorded_tests, RecordedTests, row=Row.TEST, label="recorded run"),
    part(NAME, 110, _data_integrity),
    part(NAME, 120, _goalposts, Goalposts, basis=Basis.DECLARED),
    part(NAME, 130, _proof, LastProof),
)

GATE = Gate(
    name=NAME, title="Business Logic Verification", stage=2, weight=30, code="BL",
    checks=in_order(NAME, PARTS, discover()),
)  # fmt: skip
