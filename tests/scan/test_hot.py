"""Which code may come to events: what a name means where it stands, how it is called, and what work that is worth."""

from pathlib import Path

import pytest

from gates.scan.checking import check
from gates.scan.engine import Scanner
from gates.scan.loading import load_rules
from gates.scan.paths import traces
from gates.scan.paths.events import Happening
from gates.scan.program.reading import project_of
from gates.scan.site import Site
from gates.scan.ways import hot as marking
from gates.scan.ways.hot import Hot

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
    project = project_of({"steps.py": STEP.encode(), "uses.py": uses.encode()})
    found = Hot(project, Happening(tuple((kind, ORDER.needs) for kind in ORDER.events)))
    return {getattr(node, "name", "") for node, module in found.functions.items() if module.path == "uses.py"} - {""}


@pytest.mark.parametrize(
    ("uses", "names"),
    [
        ("from steps import step\ndef fit(*a):\n    step(*a)\n", {"fit"}),
        ("from steps import step\ndef fit(*a):\n    go = step if a else None\n    go(*a)\n", {"fit"}),
        ("from steps import step\ndef fit(go, x):\n    go(x, x, x)\ndef main():\n    fit(step, 1)\n", {"fit", "main"}),
        ("from steps import Arm\ndef fit(arm):\n    arm(1, 2, 3)\ndef main():\n    a = Arm()\n    fit(a)\n", {"fit"}),
        ("from steps import step\nSTEPS = [step]\ndef fit(x):\n    for one in STEPS:\n        one(x, x, x)\n", {"fit"}),
        ("def fit(arm, x):\n    arm.advance(x, x, x)\n", {"fit"}),
        (KEPT, {"go"}),
    ],
    ids=["called", "chosen", "handed on", "object handed on", "in a list", "method of a parameter", "kept"],
)  # fmt: skip
def test_code_that_runs_an_event_is_walked(uses: str, names: set[str]) -> None:
    assert names <= hot(uses)


@pytest.mark.parametrize(
    "uses",
    [
        "def fit(x):\n    step = len\n    return step(x)\n",
        "from steps import step\ndef make():\n    go = step\n    return go\ndef other(go):\n    return go(1)\n",
        "from steps import step\nSTEPS = [step]\ndef tell(lines):\n    for line in lines:\n        line()\n",
        "def fit(arm, x):\n    return arm.advance(x)\n",
        "def tell(x):\n    return print(x.value)\n",
        "from numpy import step\ndef fit(x):\n    return step(x)\n",
        "import subprocess\ndef fit(x):\n    done = subprocess.run(x)\n    return done.advance(x, x, x)\n",
    ],
    ids=["variable", "of another scope", "other list", "other arguments", "read", "library's", "made by a library"],
)
def test_code_that_only_has_the_name_of_one_is_not(uses: str) -> None:
    assert not hot(uses) & {"fit", "tell", "other"}


MANY = """
import torch
def train_{n}(model, optimizer, loss, a, b, c):
    scaler = torch.amp.GradScaler("cuda")
    for batch in a:
        if b: scaler.scale(loss).backward()
        kept = torch.amp.GradScaler("cuda") if c else None
        if c: scaler.unscale_(optimizer)
        other = torch.amp.GradScaler("cuda") if a else None
        if b: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if a: scaler.step(optimizer)
        if other: other.update()
        if kept: kept.update()
        scaler.update()
"""


def undecided(count: int) -> list[Site]:
    """Return the functions of a program of so many that are left open."""
    files = {f"m{n}.py": MANY.format(n=n).encode() for n in range(count)}
    return [site for site in Scanner(project_of(files)).sites(ORDER) if site.undecided]


def test_work_grows_with_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "FEW", 40)
    monkeypatch.setattr(traces, "LEAST", 300)
    monkeypatch.setattr(traces, "EACH", 0)
    assert undecided(1) == []
    assert undecided(8)
    monkeypatch.setattr(traces, "EACH", 300)
    assert undecided(8) == []


def test_in_a_large_program_the_nearest_callers_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    near = "from steps import step\ndef near(*a):\n    step(*a)\ndef next_to_it(*a):\n    near(*a)\n"
    far = "".join(f"def far{n}(arm, x):\n    arm.advance(x, x, x)\n" for n in range(40))
    assert len(hot(far + near)) == 42
    monkeypatch.setattr(marking, "LEAST", 6)
    monkeypatch.setattr(marking, "EACH", 0)
    assert hot(far + near) == {"near", "next_to_it"}
    monkeypatch.setattr(marking, "LEAST", 1_000)
    assert len(hot(far + near)) == 42


@pytest.mark.parametrize(
    ("keeps", "far"),
    [
        ("def keep(rows):\n    rows.sort(key=order)\n", "value = entry.key\n    value(entry)"),
        ("class Row:\n    def step(self, opt):\n        order(opt)\n", "entry.step(entry)"),
        ("class Row:\n    def step(self, opt):\n        order(opt)\n", "Other(entry).step(entry)"),
    ],
    ids=["handed on by an attribute", "a method of an unknown class", "an attribute of another class"],
)
def test_what_a_name_alone_leads_to_is_bounded(monkeypatch: pytest.MonkeyPatch, keeps: str, far: str) -> None:
    other = "class Other:\n    def __init__(self, step):\n        self.step = step\n"
    text = other + "".join(f"def far{n}(entry):\n    {far}\n" for n in range(40))
    text += f"def order(opt):\n    opt.step()\n{keeps}"
    assert {f"far{n}" for n in range(40)} < hot(text)
    monkeypatch.setattr(marking, "LEAST", 2)
    monkeypatch.setattr(marking, "EACH", 0)
    assert not any(name.startswith("far") for name in hot(text + "def again(opt):\n    order(opt)\n"))


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
