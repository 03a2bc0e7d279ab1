"""The page of the performance gate: what stands where, and that nothing is recommended without a finding."""

import re

import pytest
from building import a_criterion, a_measure, a_task, all_evidence, folded, measured, samples

from gates.model import Level
from gates.render.markdown import render


def pages(level: Level, limit: float) -> dict[str, str]:
    task = a_task(criteria=[a_criterion(measures=[a_measure(at_least=limit, level=level.value)])])
    return render(folded(task, all_evidence(task, measured(samples()))), None)


def page(level: Level, limit: float) -> str:
    return pages(level, limit)["performance.md"]


def test_targets_come_first_and_samples_are_in_the_audit_trail() -> None:
    titles = re.findall(r"^## (.+)$", page(Level.MUST, 1.5), re.MULTILINE)
    assert titles[:3] == ["Executive Summary", "Targets", "Findings"]
    assert "## Samples of bench on cpu" in pages(Level.MUST, 1.5)["audit.md"]
    assert titles.count("Targets") == 1
    assert not {"Quality Gates", "Seen To Hold", "Samples of bench on cpu"} & set(titles)


def test_what_nobody_asked_for_is_one_line() -> None:
    text = page(Level.MUST, 1.5)
    assert "Hot path, leaks, concurrency, scaling, bundles: not looked at." in text.splitlines()
    assert "## Memory" not in text


@pytest.mark.parametrize(
    ("level", "limit", "recommended"), [(Level.SHOULD, 2.5, True), (Level.SHOULD, 1.5, False), (Level.MUST, 2.5, False)]
)
def test_only_what_a_finding_stands_behind_is_recommended(level: Level, limit: float, recommended: bool) -> None:
    text = page(level, limit)
    assert ("## Recommended\n\nFix these, too; no verdict waits for them:\n\n- PF001 `" in text) is recommended
    assert text.count("Find what makes old and new miss the target") == (limit == 2.5)
