"""Which code may come to events: what a name means where it stands, how it is called, and what work that is worth."""

from pathlib import Path

import pytest

from gates.scan.checking import Scanner, check
from gates.scan.loading import load_rules
from gates.scan.paths.events import Happening
from gates.scan.paths.hot import Hot
from gates.scan.program.project import project_of

RULES = load_rules()
ORDER = RULES["amp-clip-before-unscale"]
STEP = """
import torch
from torch.nn.utils import clip_grad_norm_
scaler = torch.amp.GradScaler("cuda")
def step(loss, optimizer, model):
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
class Arm:
    def __call__(self, loss, optimizer, model):
        step(loss, optimizer, model)
    def advance(self, loss, optimizer, model):
        step(loss, optimizer, model)
    @property
    def value(self):
        return step(None, None, None)
"""


KEPT = """
import steps
class T:
    def __init__(self):
        self.arm = steps.Arm()
    def go(self, *a):
        self.arm(*a)
"""


def hot(uses: str) -> set[str]:
    """Return the functions of a second file that may come to events of the first."""
    found = Hot(project_of({"steps.py": STEP.encode(), "uses.py": uses.encode()}), Happening(ORDER.events, ORDER.needs))
    return {getattr(node, "name", "") for node, module in found.functions.items() if module.path == "uses.py"} - {""}


PUT = "def put(thing):\n    thing.update()\n"
MAPPING = "class A:\n    def __init__(self):\n        self.x = {}\n    def put(self):\n        self.x.update(a=1)\n"


@pytest.mark.parametrize(
    ("uses", "names"),
    [
        ("from steps import step\ndef fit(*a):\n    step(*a)\n", {"fit"}),
        ("from steps import step\ndef fit(*a):\n    go = step if a else None\n    go(*a)\n", {"fit"}),
        (KEPT, {"__init__", "go"}),
        (f"{PUT}put(grad_scaler)\n", {"put"}),
        (MAPPING, set()),
    ],
    ids=["called", "chosen", "kept", "of a scaler by another name", "of a mapping that is kept"],
)
def test_code_that_may_run_an_event_is_walked_and_no_other(uses: str, names: set[str]) -> None:
    assert hot(uses) == names


def test_callers_that_surely_run_an_event_are_walked_however_many_there_are() -> None:
    lib = "def back(loss):\n    loss.backward()\ndef deeper(loss):\n    back(loss)\ndef go(opt):\n    opt.step()\n"
    train = "from lib import deeper, go\ndef step(loss, opt):\n    deeper(loss)\n    opt.zero_grad()\n    go(opt)\n"
    tests = "from lib import go\n" + "".join(f"def test_{n}(opt):\n    go(opt)\n" for n in range(1_100))
    files = {"lib.py": lib, "train.py": train, "test_all.py": tests}
    project = project_of({name: text.encode() for name, text in files.items()})
    found = Scanner(project).sites(RULES["amp-zero-grad-before-step"])
    assert [f"{site.path}:{site.line}" for site in found if not site.ok and not site.undecided] == ["train.py:4"]


def test_functions_of_a_program_are_counted(tmp_path: Path) -> None:
    text = 'async def a(): pass\nclass B:\n    def c(self): pass\n    """def not_one()"""\n# def d(): pass\n'
    (tmp_path / "a.py").write_text(text)
    assert check([ORDER], [tmp_path / "a.py"], tmp_path).functions == 2
