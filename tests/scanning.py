"""Builders for tests of code rules: a rule from a few lines, applied to a few files."""

import textwrap
from functools import partial
from pathlib import Path

from gates.scan.checking import Scanner
from gates.scan.loading import EVENTS, SHIPPED, load_rules, vocabulary
from gates.scan.loading import load as load_rule
from gates.scan.program.project import project_of
from gates.scan.rule import Rule, Site

WORDS = "problem: p\nimpact: i\nfix: f\nseverity: high\ngood: x = 1\nbad: x = 2\n"


def a_rule(folder: Path, body: str, name: str = "mine") -> Rule:
    """Return a rule of the given body, its words filled in."""
    path = folder / f"{name}.yaml"
    path.write_text(f"id: {name}\n{WORDS}{textwrap.dedent(body)}", encoding="utf-8")
    return load_rule(path, folder, partial(vocabulary, folders=(SHIPPED / EVENTS,), root=folder))


def sites(rule: Rule | str, files: dict[str, str] | str) -> list[Site]:
    """Return what a rule (or the shipped one of an id) finds in files, or in one file `m.py`."""
    files = {"m.py": files} if isinstance(files, str) else files
    chosen = load_rules()[rule] if isinstance(rule, str) else rule
    return Scanner(project_of({path: textwrap.dedent(text).encode() for path, text in files.items()})).sites(chosen)


def broken(rule: Rule | str, files: dict[str, str] | str) -> list[str]:
    """Return the places where a rule is broken, as `path:line`."""
    found = [site for site in sites(rule, files) if not site.ok]
    assert not any(site.undecided for site in found)
    return [f"{site.path}:{site.line}" for site in found]
