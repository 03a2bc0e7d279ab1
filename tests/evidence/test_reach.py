"""Code that must be called from an entry: reached for certain, not at all, or not to be told by reading."""

from pathlib import Path
from typing import Any

import pytest
from building import a_context, a_criterion, a_task, written

from gates.evidence.reach import ReachTrace
from gates.evidence.source_tree import SourceTree

STEP = "def train_step(x):\n    return x\n\n\nclass Step:\n    def __init__(self, n=1):\n        self.n = n\n\n"
STEP += "    def __call__(self, x):\n        return self._take(x)\n\n    def _take(self, x):\n        return x\n"


def reach(tmp_path: Path, trainer: str, target: str = "train_step", entry: str = "fit", **more: str) -> ReachTrace:
    files: dict[str, str | bytes] = {"pkg/__init__.py": "", "pkg/step.py": STEP, "pkg/trainer.py": trainer, **more}
    root = written(tmp_path / "project", files)
    binding: dict[str, Any] = {"symbol": f"pkg.step:{target}", "reached_from": f"pkg.trainer:{entry}"}
    (trace,) = SourceTree.collect(a_task(criteria=[a_criterion(code=[binding])]), a_context(root)).reaches
    return trace


IMPORT = "from pkg.step import Step, train_step\n"
REACHED = {
    "directly": (IMPORT + "def fit(x):\n    return train_step(x)\n", "train_step"),
    "through a helper": (IMPORT + "def fit(x):\n    return _one(x)\ndef _one(x):\n    train_step(x)\n", "train_step"),
    "by another name": ("from pkg import step as s\ndef fit(x):\n    s.train_step(x)\n", "train_step"),
    "through an alias": (IMPORT + "go = train_step\ndef fit(x):\n    go(x)\n", "train_step"),
    "in a partial": (IMPORT + "import functools\ndef fit(x):\n    functools.partial(train_step, x)()\n", "train_step"),
    "handed to a library": (IMPORT + "def fit(x):\n    return list(map(train_step, x))\n", "train_step"),
    "handed to what calls it": (
        IMPORT + "def run(f, x):\n    return f(x)\ndef fit(x):\n    run(train_step, x)\n", "train_step"),
    "in an inner function": (IMPORT + "def fit(x):\n    def go():\n        train_step(x)\n    go()\n", "train_step"),
    "in a lambda": (IMPORT + "def fit(x, o):\n    o.step(lambda: train_step(x))\n", "train_step"),
    "made here": (IMPORT + "def fit(x):\n    Step()(x)\n", "Step._take"),
    "made here and kept": (IMPORT + "def fit(x):\n    step = Step()\n    step(x)\n", "Step._take"),
    "by its type": (IMPORT + "def fit(x, step: Step):\n    step(x)\n", "Step._take"),
    "class": (IMPORT + "def fit(x):\n    Step()\n", "Step"),
    "under a decorator that runs it": (
        IMPORT + "import functools\ndef log(f):\n    @functools.wraps(f)\n    def go(*a): return f(*a)\n    return go\n"
        "@log\ndef one(x): train_step(x)\n@log\ndef fit(x): one(x)\n", "train_step"),
    "under a decorator that is made": (
        IMPORT + "def retry(n):\n    def on(f):\n        def go(*a): return f(*a)\n        return go\n    return on\n"
        "@retry(3)\ndef fit(x): train_step(x)\n", "train_step"),
    "behind a switch that is on": (IMPORT + "USE = True\ndef fit(x):\n    if USE: train_step(x)\n", "train_step"),
    "in the second way of two": (
        IMPORT + "if x:\n    def fit(x):\n        train_step(x)\nelse:\n    def fit(x):\n        train_step(x)\n",
        "train_step"),
}  # fmt: skip


OVER = "class Many:\n    def __init__(self, steps: list[Step]):\n        self.steps = steps\n"
OVER += "        self.named: dict[str, Step] = {}\n"
OVER += "    def all(self) -> 'tuple[Step, ...]':\n        return tuple(self.steps)\n"
REACHED |= {
    "for each of an annotated list": (
        IMPORT + "def fit(x, steps: list[Step]):\n    for s in steps: s(x)\n", "Step._take"),
    "for each that a method gives": (
        IMPORT + OVER + "def fit(x, m: Many):\n    for s in m.all(): s(x)\n", "Step._take"),
    "for each of an attribute": (
        IMPORT + OVER + "def fit(x, m: Many):\n    for i, s in enumerate(m.steps): s(x)\n", "Step._take"),
    "for each value": (
        IMPORT + OVER + "def fit(x, m: Many):\n    for k, s in m.named.items(): s(x)\n", "Step._take"),
    "for each in a comprehension": (
        IMPORT + OVER + "def fit(x, m: Many):\n    return [s(x) for s in m.named.values()]\n", "Step._take"),
}  # fmt: skip


@pytest.mark.parametrize("case", REACHED)
def test_code_that_an_entry_calls_is_reached(tmp_path: Path, case: str) -> None:
    trainer, target = REACHED[case]
    found = reach(tmp_path, trainer, target)
    assert (found.reached.value, found.problem) == ("reached", "")


METHODS = {
    "own method": "class T:\n    def fit(self, x): self.one(x)\n    def one(self, x): train_step(x)\n",
    "of its base": ("class B:\n    def one(self, x): train_step(x)\nclass T(B):\n    def fit(self, x): self.one(x)\n"),
    "of what extends it": (
        "class T:\n    def fit(self, x): self.one(x)\n    def one(self, x): raise NotImplementedError\n"
        "class S(T):\n    def one(self, x):\n        train_step(x)\n"
    ),
    "super": (
        "class B:\n    def fit(self, x):\n        train_step(x)\n"
        "class T(B):\n    def fit(self, x):\n        super().fit(x)\n"
    ),
    "property": (
        "class T:\n    def fit(self, x):\n        return self.out\n    @property\n    def out(self):\n"
        "        return train_step(1)\n"
    ),
    "attribute": (
        "class T:\n    def __init__(self):\n        self.go = train_step\n    def fit(self, x):\n        self.go(x)\n"
    ),
    "with": (
        "class C:\n    def __enter__(self):\n        train_step(1)\n    def __exit__(self, *a):\n        return None\n"
        "class T:\n    def fit(self, x):\n        with C():\n            return 1\n"
    ),
}


@pytest.mark.parametrize("case", METHODS)
def test_methods_are_followed(tmp_path: Path, case: str) -> None:
    found = reach(tmp_path, IMPORT + METHODS[case], entry="T.fit")
    assert (found.reached.value, found.problem) == ("reached", "")


def test_the_way_is_told_call_by_call(tmp_path: Path) -> None:
    found = reach(tmp_path, REACHED["through a helper"][0])
    assert found.way == ("pkg/trainer.py:3 pkg.trainer.fit", "pkg/trainer.py:5 pkg.trainer._one")


NOT_REACHED = {
    "not called": (IMPORT + "def fit(x):\n    return x\n", ()),
    "called by another": (
        IMPORT + "def fit(x):\n    return x\ndef old(x):\n    train_step(x)\n", ("pkg/trainer.py:5 pkg.trainer.old",)),
    "called at import": (IMPORT + "def fit(x):\n    return x\ntrain_step(1)\n", ("pkg/trainer.py:4 at import",)),
    "in dead code": (IMPORT + "def fit(x):\n    return x\n    train_step(x)\n", ()),
    "under if False": (IMPORT + "def fit(x):\n    if False:\n        train_step(x)\n", ()),
    "in a comment": (IMPORT + "def fit(x):\n    return x  # train_step(x)\n", ()),
    "in an inner function nobody calls": (IMPORT + "def fit(x):\n    def go(): train_step(x)\n    return x\n", ()),
    "after the end of the process": (IMPORT + "import sys\ndef fit(x):\n    sys.exit(0)\n    train_step(x)\n", ()),
    "where two constants differ": (IMPORT + "def fit(x):\n    if 1 == 2:\n        train_step(x)\n", ()),
    "in what another takes the place of": (
        IMPORT + "def fit(x):\n    train_step(x)\ndef _plain(x):\n    return x\nfit = _plain\n",
        ("pkg/trainer.py:3 pkg.trainer.fit",)),
    "another of its name": ("def train_step(x):\n    return x\ndef fit(x):\n    train_step(x)\n", ()),
    "a library's of its name": ("import lib\ndef fit(x):\n    lib.train_step(x)\n", ()),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_REACHED)
def test_code_that_an_entry_does_not_call_is_not_reached(tmp_path: Path, case: str) -> None:
    trainer, callers = NOT_REACHED[case]
    found = reach(tmp_path, trainer)
    assert (found.reached.value, found.callers, found.problem) == ("not reached", callers, "")


def test_super_of_a_library_calls_nothing_of_the_program(tmp_path: Path) -> None:
    error = "class Error(Exception):\n    def __init__(self):\n        super().__init__('x')\n"
    error += "def fit(x):\n    raise Error()\n"
    assert reach(tmp_path, IMPORT + error, "Step.__init__").reached.value == "not reached"


MIXED = (
    "class A:\n    def go(self):\n        super().go()\nclass B:\n    def go(self):\n        train_step(1)\n"
    "class C(A, B):\n    x = 1\ndef fit(x):\n    A().go()\n"
)


def test_super_may_come_to_a_class_beside(tmp_path: Path) -> None:
    assert reach(tmp_path, IMPORT + MIXED).reached.value == "not decided"


def test_the_doubt_is_the_one_on_the_way_from_the_entry(tmp_path: Path) -> None:
    other = "HOOKS = {}\ndef hook(f):\n    HOOKS[1] = f\n@hook\ndef any(x):\n    train_step(x)\n"
    found = reach(tmp_path, IMPORT + "def fit(x, step):\n    step.go(x)\nclass T:\n    def go(self, x):\n"
                  "        train_step(x)\n" + other)  # fmt: skip
    assert (found.reached.value, found.problem) == ("not decided", "what pkg/trainer.py:3 calls is not known")


NOT_DECIDED = {
    "fetched and kept": (
        IMPORT + "class T:\n    def __init__(self):\n        self.go = getattr(self, f'on_{x}')\n"
        "    def on_a(self, x):\n        train_step(x)\n    def run(self, x):\n        self.go(x)\n"
        "def fit(x, t: T):\n    t.run(x)\n", "train_step"),
    "one of all members": (
        IMPORT + "import inspect\nclass T:\n    def __init__(self):\n"
        "        self.all = dict(inspect.getmembers(self))\n"
        "    def on_a(self, x):\n        train_step(x)\n    def run(self, x):\n        self.all['on_a'](x)\n"
        "def fit(x, t: T):\n    t.run(x)\n", "train_step"),
    "kept in a table": (IMPORT + "ALL = {'a': train_step}\ndef fit(x):\n    ALL['a'](x)\n", "train_step"),
    "on what is not known": (IMPORT + "def fit(x, step):\n    step._take(x)\n", "Step._take"),
    "by getattr": (IMPORT + "def fit(x):\n    getattr(x, 'train_step')(x)\n", "train_step"),
    "handed to what keeps it": (
        IMPORT + "HOOKS = {}\ndef hook(f):\n    HOOKS[1] = f\ndef fit(x):\n    hook(train_step)\n", "train_step"),
    "that is only printed": (IMPORT + "def fit(x):\n    print(train_step)\n", "train_step"),
    "that is only kept in a list": (IMPORT + "def fit(x, found=[]):\n    found.append(train_step)\n", "train_step"),
    "whose name is all that is taken": (
        IMPORT + "import functools\ndef fit(x):\n    @functools.wraps(train_step)\n    def go(y): return y\n"
        "    return go(x)\n", "train_step"),
    "in a lambda that nobody reads": (IMPORT + "def fit(x):\n    go = lambda: train_step(x)\n", "train_step"),
    "in a loop over nothing": (IMPORT + "def fit(x):\n    for _ in ():\n        train_step(x)\n", "train_step"),
    "behind a switch that is off": (IMPORT + "USE = False\ndef fit(x):\n    if USE: train_step(x)\n", "train_step"),
    "in a coroutine that nobody awaits": (
        IMPORT + "async def go(): train_step(1)\ndef fit(x):\n    go()\n", "train_step"),
    "in a generator that nobody reads": (
        IMPORT + "def go():\n    yield train_step(1)\ndef fit(x):\n    go()\n", "train_step"),
    "in a partial that nobody has": (
        IMPORT + "import functools\ndef fit(x):\n    functools.partial(train_step, x)\n", "train_step"),
    "under a decorator that drops it": (
        IMPORT + "def drop(f):\n    return lambda x: x\n@drop\ndef fit(x):\n    train_step(x)\n", "train_step"),
    "in a helper that a decorator drops": (
        IMPORT + "def drop(f):\n    return lambda x: x\n@drop\ndef go(x):\n    train_step(x)\ndef fit(x):\n    go(x)\n",
        "train_step"),
    "by a name that is another's in the end": (
        IMPORT + "def fit(x):\n    train_step(x)\ntrain_step = lambda x: x\n", "train_step"),
    "through a protocol": (
        IMPORT + "from typing import Protocol\nclass P(Protocol):\n    def go(self, x): ...\nclass One:\n"
        "    def go(self, x): train_step(x)\ndef fit(x, p: P):\n    p.go(x)\n", "train_step"),
    "handed in by another": (
        IMPORT + "def fit(x, on):\n    on(x)\ndef main(x):\n    fit(x, train_step)\n", "train_step"),
    "wrapped at import": (IMPORT + "import torch\nfast = torch.compile(train_step)\ndef fit(x):\n    fast(x)\n",
                          "train_step"),
    "in a table of lambdas": (IMPORT + "T = {1: lambda x: train_step(x)}\ndef fit(x):\n    T[1](x)\n", "train_step"),
    "by a name that is made": (
        IMPORT + "import pkg.step as s\ndef fit(x, k):\n    getattr(s, f'{k}_step')(x)\n", "train_step"),
    "from all names": (IMPORT + "def fit(x, k):\n    globals()[k](x)\n", "train_step"),
    "by an operator": (IMPORT + "def fit(x):\n    return x\n", "Step.__call__"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_DECIDED)
def test_what_reading_cannot_tell_is_not_decided(tmp_path: Path, case: str) -> None:
    trainer, target = NOT_DECIDED[case]
    assert reach(tmp_path, trainer, target).reached.value == "not decided"


def test_function_of_the_name_of_its_module_is_not_decided_in_a_table(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "", "pkg/step/__init__.py": "from .one import one\n",
        "pkg/step/one.py": "def one(x):\n    return x\n",
        "pkg/trainer.py": "from pkg import step\nTABLE = [step.one]\ndef fit(x):\n    for f in TABLE: f(x)\n",
    }  # fmt: skip
    root = written(tmp_path / "project", files)
    binding = {"symbol": "pkg.step.one:one", "reached_from": "pkg.trainer:fit"}
    (trace,) = SourceTree.collect(a_task(criteria=[a_criterion(code=[binding])]), a_context(root)).reaches
    assert trace.reached.value == "not decided"


def test_method_that_a_framework_may_call_is_not_decided(tmp_path: Path) -> None:
    module = (
        "import lightning\nclass M(lightning.LightningModule):\n    def training_step(self, x):\n        return x\n"
    )
    files: dict[str, str | bytes] = {"pkg/__init__.py": "", "pkg/m.py": module + "def fit(m):\n    return m\n"}
    binding = {"symbol": "pkg.m:M.training_step", "reached_from": "pkg.m:fit"}
    task = a_task(criteria=[a_criterion(code=[binding])])
    (found,) = SourceTree.collect(task, a_context(written(tmp_path / "project", files))).reaches
    assert found.reached.value == "not decided"


def test_entry_that_is_not_there_reaches_nothing(tmp_path: Path) -> None:
    found = reach(tmp_path, "def other():\n    return 1\n")
    assert (found.reached.value, found.problem) == (
        "not reached", "pkg.trainer:fit: pkg/trainer.py defines no 'fit'",
    )  # fmt: skip


def test_file_that_cannot_be_read_leaves_open_what_is_not_reached(tmp_path: Path) -> None:
    found = reach(tmp_path, NOT_REACHED["not called"][0], **{"pkg/bad.py": "def f(:\n"})
    assert (found.reached.value, found.problem.startswith("pkg/bad.py:1")) == ("not decided", True)


def test_pattern_is_reached_where_enough_of_its_places_are(tmp_path: Path) -> None:
    body = "def fit(o):\n    o.zero()\n    _one(o)\ndef _one(o):\n    o.take(1)\ndef old(o):\n    o.take(2)\n"
    root = written(tmp_path / "project", {"pkg/__init__.py": "", "pkg/m.py": body})
    pattern = {"pattern": "$O.take($N)", "reached_from": "pkg.m:fit"}
    code = [pattern, {**pattern, "at_least": 2}]
    found = SourceTree.collect(a_task(criteria=[a_criterion(code=code)]), a_context(root))
    assert [len(one.places) for one in found.patterns] == [2, 2]
    assert [one.reached.value for one in found.reaches] == ["reached", "not reached"]


def test_names_are_those_that_the_project_imports(tmp_path: Path) -> None:
    text = "def fit(x):\n    other()\ndef one(x):\n    step(x)\ndef step(x): return x\n"
    files: dict[str, str | bytes] = {"src/pkg/__init__.py": "", "src/pkg/m.py": text}
    binding = {"symbol": "pkg.m:step", "reached_from": "pkg.m:fit"}
    task = a_task(implementation=["src/pkg"], criteria=[a_criterion(code=[binding])])
    (found,) = SourceTree.collect(task, a_context(written(tmp_path / "project", files))).reaches
    assert (found.reached.value, found.callers) == ("not reached", ("src/pkg/m.py:4 pkg.m.one",))
