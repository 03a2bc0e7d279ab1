"""What the mentions of a name may mean, for thousands of them at once."""

from pathlib import Path

from gates.scan.engine import Scanner
from gates.scan.loading import load_rules
from gates.scan.program.module import Function
from gates.scan.program.reading import project_of
from gates.scan.ways.mentions import Mentions

BASE = b"""
class Base:
    def step(self): self.go()
    def go(self): pass
def go(): pass
def step(): go()
"""
MINE = b"""
from base import Base, step as s, go
import base
class Mine(Base):
    def step(self): super().step()
    def other(self, it): it.step(); self.step(); base.step(); s(); go()
def late(step, x: Base, y: int): step(); x.step(); y.step(); t = s; t()
"""
FILES = {
    "base.py": BASE,
    "mine.py": MINE,
    "star.py": b"from base import *\nstep()\ngo()\nq = step if go else None\n",
    "plain.py": b"class Apart:\n    def step(self): pass\na = Apart()\na.step()\na.go = a.step\n",
}


def test_mentions_that_are_taken_together_mean_the_same_functions() -> None:
    project = project_of(FILES)
    mentions = Mentions(project)
    functions: list[Function] = [node for node, _ in project.functions.values()]
    grouped = 0
    for name in ("step", "go", "s", "t"):
        senses = mentions.senses(name).all
        assert sorted(map(id, mentions.of(name))) == sorted(id(m) for sense in senses for m in sense.mentions)
        for sense in senses:
            grouped += len(sense.mentions) > 1
            assert {mention.is_open for mention in sense.mentions} == {sense.first.is_open}
            for function in functions:
                for owner in (None, *project.classes.values()):
                    assert len({mention.means(function, owner) for mention in sense.mentions}) == 1
        for function in functions:
            for owner in (None, *project.classes.values()):
                meant = {m for m in mentions.of(name) if m.means(function, owner) or (owner and m.is_open)}
                found = {m for sense in mentions.senses(name).meaning(function, owner) for m in sense.mentions}
                assert found | set(mentions.senses(name).open_mentions if owner else ()) == meant
    assert grouped > 2


def test_name_of_a_library_is_found_under_other_names_too() -> None:
    project = project_of({"a.py": b"from torch import stack as s\nt = s\nt(x)\nstack(y)\n", "b.py": b"t(z)\n"})
    found = {(mention.module.path, mention.node.lineno) for mention in Mentions(project).meaning("stack")}
    assert found == {("a.py", 2), ("a.py", 3), ("a.py", 4)}


PLAIN = {
    "scaler.py": b"""
class Scaler:
    def __init__(self): super().__init__()
    def step(self): pass
    def add(self): pass
    def close(self): pass
""",
    "uses.py": b"""
import os
from scaler import Scaler
class Tracker(list):
    def __init__(self): super().__init__(); self.step = 0; self.held = Scaler().step
    def count(self, records):
        found = {"a"}; found.add("b"); os.close(1)
        self.step += 1
        later = self.step
        return [record.step + 1 for record in records], self.held()
class Runs(Scaler):
    def again(self): super().step(); self.step()
def unknown(thing): thing.step(); thing.close()
""",
}


def test_numbers_and_objects_of_libraries_run_no_method_of_the_program() -> None:
    project = project_of(PLAIN)
    scaler = project.classes["scaler.Scaler"]
    found = {
        (mention.around.name, name, mention.node.lineno)  # type: ignore[attr-defined]  # all are in functions
        for name in ("__init__", "add", "step", "close", "held")
        for mention in Mentions(project).of(name)
        if mention.means(scaler.methods.get(name, scaler.methods["step"]), scaler)
    }
    expected = {("__init__", "step", 5), ("count", "held", 10), ("again", "step", 12), ("unknown", "step", 13)}
    assert found == {*expected, ("unknown", "close", 13)}


def test_every_order_in_the_training_core_is_decided() -> None:
    rules = [rule for rule in load_rules().values() if "amp" in rule.form.tags]
    root = Path(__file__).parents[2] / "amp_core"
    files = {str(path.relative_to(root.parent)): path.read_bytes() for path in sorted(root.rglob("*.py"))}
    scanner = Scanner(project_of(files))
    assert [(rule.id, site) for rule in rules for site in scanner.sites(rule) if not site.ok] == []
