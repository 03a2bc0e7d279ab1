"""What orders of events see of objects: handed to constructors, one of several classes, in lists, called by a text."""

import ast
import random
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from scanning import a_rule, broken

from gates.scan.analyses.reading.containers import Path as Steps
from gates.scan.analyses.reading.containers import Way
from gates.scan.analyses.reading.origins import MAX_WORK, Origins
from gates.scan.analyses.reading.targets import Targets
from gates.scan.automata.automaton import MARKERS
from gates.scan.engine import Scanner
from gates.scan.loading import load_rules
from gates.scan.program.reading import project_of
from gates.scan.program.scope import Scope

RULES = load_rules()
TRAINER = """
import torch
from parts import Clip, Plain, Scaled, Words
class Trainer:
    def __init__(self, model, optimizer, hooks=()):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cuda")
        self.hooks = list(hooks)
    def tell(self, name):
        for hook in self.hooks:
            getattr(hook, f"after_{name}")(self)
    def fit(self, batches):
        for batch in batches:
            self.optimizer.zero_grad()
            self.scaler.scale(self.model(batch)).backward()
            self.tell(FIRST)
            self.scaler.unscale_(self.optimizer)
            self.tell(SECOND)
            self.scaler.step(self.optimizer)
            self.scaler.update()
def main(model, batches):
    Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), [Words(), Clip()]).fit(batches)
"""
PARTS = """
import torch
class Words:
    def after_backward(self, trainer):
        print("step")
class Clip:
    def after_backward(self, trainer):
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
class Plain:
    def __init__(self, parameters):
        self.inner = torch.optim.SGD(parameters, lr=0.1)
    def backward(self, loss):
        loss.backward()
    def limit(self, parameters):
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    def step(self):
        self.inner.step()
        self.inner.zero_grad()
class Scaled(Plain):
    def __init__(self, parameters):
        super().__init__(parameters)
        self.scaler = torch.amp.GradScaler("cuda")
    def backward(self, loss):
        self.scaler.scale(loss).backward()
    LIMIT
    def step(self):
        self.scaler.step(self.inner)
        self.scaler.update()
        self.inner.zero_grad()
"""
LIMIT = """def limit(self, parameters):
        self.scaler.unscale_(self.inner)
        super().limit(parameters)"""
CHOICE = """
import torch
from parts import Plain, Scaled
class Task:
    def __init__(self, model, config):
        kind = Plain if not config.amp else Scaled
        self.model, self.stepper = model, kind(model.parameters())
    def turn(self, batch):
        self.stepper.backward(self.model(batch))
        self.stepper.limit(self.model.parameters())
        self.stepper.step()
"""
KEEPER = """
import torch
class Keeper:
    def __init__(self, scaler, schedule):
        self.scaler, self.schedule = scaler, schedule
    def close(self):
        before = self.scaler.get_scale()
        UPDATE
        if self.scaler.get_scale() >= before:
            self.schedule.step()
def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    scaler = torch.amp.GradScaler("cuda")
    keeper = Keeper(scaler, schedule)
    for batch in batches:
        optimizer.zero_grad()
        scaler.scale(model(batch)).backward()
        scaler.step(optimizer)
        keeper.close()
"""


def found(rule: str, **files: str) -> list[tuple[str, str]]:
    """Return the files and the lines of code that a rule finds."""
    texts = {f"{name}.py": textwrap.dedent(text) for name, text in files.items()}
    scanner = Scanner(project_of({path: text.encode() for path, text in texts.items()}))
    sites = [site for site in scanner.sites(RULES[rule]) if not site.ok]
    return [(site.path, texts[site.path].splitlines()[site.line - 1].strip()) for site in sites]


@pytest.mark.parametrize("first", [True, False])
def test_a_hook_called_by_a_text_clips_where_it_is_called(first: bool) -> None:
    names = ('"backward"', '"all"') if first else ('"all"', '"backward"')
    trainer = TRAINER.replace("FIRST", names[0]).replace("SECOND", names[1])
    clips = [("parts.py", "torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)")]
    assert found("amp-clip-before-unscale", trainer=trainer, parts=PARTS.replace("LIMIT", "")) == clips * first


@pytest.mark.parametrize(("limit", "count"), [("", 1), (LIMIT, 0)])
def test_an_object_of_one_of_two_classes_is_of_one_throughout(limit: str, count: int) -> None:
    parts = PARTS.replace("LIMIT", limit)
    clips = [("parts.py", "torch.nn.utils.clip_grad_norm_(parameters, 1.0)")]
    assert found("amp-clip-before-unscale", task=CHOICE, parts=parts) == clips * count
    assert found("amp-plain-step", task=CHOICE, parts=parts) == []


@pytest.mark.parametrize(("update", "count"), [("self.scaler.update()", 0), ("pass", 1)])
def test_a_scaler_handed_to_a_constructor_stays_the_same(update: str, count: int) -> None:
    text = KEEPER.replace("UPDATE", update)
    assert found("amp-step-without-update", keeper=text) == [("keeper.py", "scaler.step(optimizer)")] * count


def test_what_is_missing_is_said_where_a_shared_helper_is_called_without_it() -> None:
    text = """
    import torch
    def advance(scaler, optimizer):
        scaler.step(optimizer)
        scaler.update()
    def one(model, batches, scaler):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in batches:
            optimizer.zero_grad()
            scaler.scale(model(batch)).backward()
            advance(scaler, optimizer)
    def other(model, batches, scaler):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in batches:
            scaler.scale(model(batch)).backward()
            advance(scaler, optimizer)  # without
    """
    assert found("amp-missing-zero-grad", m=text) == [("m.py", "advance(scaler, optimizer)  # without")]


def test_a_short_search_finds_what_the_whole_one_finds() -> None:
    chance = random.Random(7)
    orders = [each.order for rule in RULES.values() for each in (*rule.never, *rule.always)]
    for order in orders:
        names = [*sorted(order.names - set(MARKERS)), "x", "y"]
        for _ in range(60):
            word = _word(chance, names)
            assert order.find(tuple(word)) == order.search(word), (order.text, word)


def _word(chance: random.Random, names: list[str]) -> list[str]:
    word, depth = ["start"], 0
    for _ in range(chance.randrange(25)):
        kind = chance.random()
        if kind < 0.15:
            word, depth = [*word, "loop", "turn"], depth + 1
        elif kind < 0.4 and depth:
            mark = "turn" if kind < 0.3 else "done"
            word, depth = [*word, mark], depth - (mark == "done")
        else:
            word.append(chance.choice(names))
    return [*word, *["done"] * depth, "end"]


def test_partial_of_itself_is_followed_once() -> None:
    text = "from functools import partial\ndef wrap(step):\n    step = partial(step, 1)\n    step()\n"
    project = project_of({"a.py": text.encode()})
    module = project.modules["a.py"]
    (call,) = module.calls["step"]
    assert list(Targets(project, Origins(project)).behind(call.func, project.scope_at(call, module))) == []


def test_objects_that_functions_hand_to_each_other_cost_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = "".join(f"    f{n}(a.v, b.v)\n    f{n}(b, a)\n" for n in range(5))
    text = "class A:\n    v = 1\n" + "".join(f"def f{n}(a, b):\n{calls}" for n in range(5)) + "f0(A(), A())\n"
    project = project_of({"m.py": text.encode()})
    work = 0
    behind = Origins._behind

    def counted(self: Origins, node: ast.expr, scope: Scope, path: Steps) -> Iterator[Way]:
        nonlocal work
        work += 1
        return behind(self, node, scope, path)

    monkeypatch.setattr(Origins, "_behind", counted)
    module = project.modules["m.py"]
    for node in module.live[ast.Attribute]:
        assert isinstance(node, ast.Attribute)
        Origins(project).classes(node.value, project.scope_at(node, module))
    assert 0 < work <= MAX_WORK * len(module.live[ast.Attribute])


@pytest.mark.parametrize("base", ["super().__init__(made)", "Base.__init__(self, made)"])
def test_what_an_heir_hands_to_its_base_is_known(base: str) -> None:
    text = (
        "import torch\n"
        "class Base:\n"
        "    def __init__(self, optimizer, scheduler=None):\n"
        "        self.optimizer, self.scheduler = optimizer, scheduler\n"
        "    def go(self, loss):\n"
        "        loss.backward()\n"
        "        self.optimizer.zero_grad()\n"
        "        self.optimizer.step()\n"
        "class Own(Base):\n"
        "    def __init__(self, net):\n"
        "        made = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        f"        {base}\n"
    )
    found = Scanner(project_of({"m.py": text.encode()})).sites(RULES["amp-zero-grad-before-step"])
    assert {site.line for site in found if not site.ok} == {7}


BEGIN_FIRST = """
    events: {begin: $C.begin(), run: $C.execute(...)}
    needs: [begin]
    never: start (not begin)* run
    at: run
"""
CONNECTION = """
class Connection:
    def begin(self):
        print("begin")
    def execute(self, text):
        print(text)
"""


@pytest.mark.parametrize(
    ("receiver", "inside"),
    [
        ("connection", ""),
        ("connection: Connection", ""),
        ("connection", "\nclass Shell:\n    def execute(self): ...\n"),
    ],
)
def test_a_method_of_the_programs_own_that_holds_no_events_is_one_itself(
    receiver: str, inside: str, tmp_path: Path
) -> None:
    body = f"def f({receiver}):\n    connection.execute('x')\n    connection.begin()\n"
    rule = a_rule(tmp_path, BEGIN_FIRST)
    line = len(f"{CONNECTION}{inside}".splitlines()) + 2
    assert broken(rule, f"{CONNECTION}{inside}{body}") == [f"m.py:{line}"]


def test_a_method_of_the_programs_own_that_runs_the_event_is_walked(tmp_path: Path) -> None:
    safe = "class Safe:\n    def __init__(self, raw):\n        self.raw = raw\n    def execute(self, text):\n"
    safe += "        self.raw.begin()\n        self.raw.execute(text)\n    def begin(self):\n        pass\n"
    body = "def f(raw):\n    safe = Safe(raw)\n    safe.execute('x')\n"
    assert broken(a_rule(tmp_path, BEGIN_FIRST), f"{safe}{body}") == []
