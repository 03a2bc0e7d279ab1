"""The code rules against small training projects: sound ones, and ones with a single defect planted in them."""

import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from benchmarks.planting import SETS, Case, planted, replaced, sound
from gates.model import GRAVE
from gates.scan.checking import Scanner, check
from gates.scan.loading import load_rules
from gates.scan.program.project import project_of
from gates.scan.rule import Site

RULES = load_rules()
MOST = 6
COMBINED = "amp-step-order"  # it says once more what the rules for single orders say
MISSED = frozenset(
    {
        "engine: amp-missing-zero-grad: the mixed-precision trainer does not clear",  # the loop is its base class's
        "wrapper: hidden-members: a keyword that the wrapper does not take",  # only callers tell of the class
    }
)


Findings = Callable[[str], dict[str, list[tuple[str, Site]]]]


@pytest.fixture(scope="session")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Apply all rules to all projects of a set; what one process of a test run did the others read."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    @cache
    def of_set(kind: str) -> dict[str, list[tuple[str, Site]]]:
        known = shared / f"planted-{kind}.pickle"
        if known.exists():
            return cast("dict[str, list[tuple[str, Site]]]", pickle.loads(known.read_bytes()))
        made = {case.id: found(case) for case in (*planted(kind), *sound(kind))}
        fresh = folder / known.name
        fresh.write_bytes(pickle.dumps(made))
        if fresh != known:
            fresh.replace(known)
        return made

    return of_set


def found(case: Case) -> list[tuple[str, Site]]:
    """Apply all rules to one project."""
    scanner = Scanner(project_of({path: text.encode() for path, text in case.files.items()}))
    sites = [(rule.id, site) for rule in RULES.values() for site in scanner.sites(rule)]
    return [(rule, site) for rule, site in sites if not site.ok and not site.undecided]


def is_found(case: Case, seen: list[tuple[str, Site]]) -> bool:
    """Return whether a rule speaks of a defect, in its file and near its line."""
    return any(place.near(s.path, s.line) for _, s in seen for place in case.places)


def test_corpus_is_large_enough() -> None:
    assert sum(len(planted(kind)) for kind in SETS) >= 60
    assert sum(len(sound(kind)) for kind in SETS) >= 25
    ids = [case.id for kind in SETS for case in (*planted(kind), *sound(kind))]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("kind", SETS)
def test_every_planted_defect_is_found_at_its_line(kind: str, findings: Findings) -> None:
    missed = {case.id for case in planted(kind) if not is_found(case, findings(kind)[case.id])}
    assert missed == {name for name in MISSED if name in findings(kind)}


@pytest.mark.parametrize("rule", sorted(set(RULES) - {COMBINED}))
def test_a_rule_by_itself_reads_the_files_where_it_finds_a_defect(
    rule: str, tmp_path: Path, findings: Findings
) -> None:
    cases = [case for kind in SETS for case in planted(kind) if rule in case.rules]
    cases = sorted(cases, key=lambda case: -len(case.files))[:MOST]  # more files, more to choose among
    found = {}
    for number, case in enumerate(cases):
        case.write(tmp_path / str(number))
        seen = check([RULES[rule]], sorted((tmp_path / str(number)).rglob("*.py")), tmp_path / str(number))
        found[case.id] = [(rule, site) for site in seen.sites[rule] if not site.ok and not site.undecided]
    together = {case.id for case in cases if {site[0] for site in findings(case.kind)[case.id]} >= {rule}}
    assert {name for name in together if not found[name]} == set()


@pytest.mark.parametrize("kind", SETS)
def test_sound_code_has_no_finding(kind: str, findings: Findings) -> None:
    assert [case.id for case in sound(kind) if findings(kind)[case.id]] == []


@pytest.mark.parametrize("kind", SETS)
def test_a_defect_blocks_nowhere_else(kind: str, findings: Findings) -> None:
    for case in planted(kind):
        for rule, site in findings(kind)[case.id]:
            if RULES[rule].form.severity in GRAVE and rule != COMBINED:
                assert any(place.near(site.path, site.line) for place in case.places), (case.id, rule, site)


def test_an_edit_keeps_the_indentation_around_it() -> None:
    text = "def f():\n    with a:\n        b()\n    c()\n"
    assert replaced(text, "    b()\nc()\n", "    b()\n    c()\n") == "def f():\n    with a:\n        b()\n        c()\n"


@pytest.mark.parametrize(("text", "old"), [("a\n", "b\n"), ("a\na\n", "a\n")])
def test_an_edit_must_fit_in_one_place(text: str, old: str) -> None:
    with pytest.raises(ValueError, match="times"):
        replaced(text, old, "c\n")


def test_a_project_is_written(tmp_path: Path) -> None:
    case = sound("tuned")[0]
    case.write(tmp_path)
    assert all((tmp_path / path).read_text(encoding="utf-8") == text for path, text in case.files.items())
