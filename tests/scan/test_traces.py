# ruff: noqa: E501  # each program is one line
"""Orders over the paths of a program: through branches, loops, helpers, wrappers and other files."""

import pytest
from scanning import broken, sites

from gates.scan.program.project import project_of

HEAD = "import torch\nclip = torch.nn.utils.clip_grad_norm_\n"
RIGHT = (
    "scaler.scale(loss).backward(); scaler.unscale_(optimizer); clip(ps, 1.0); scaler.step(optimizer); scaler.update()"
)
ORDER = "amp-step-order"


def lines(body: str, rule: str = ORDER) -> list[int]:
    return [int(place.partition(":")[2]) for place in broken(rule, HEAD + body)]


BROKEN = {
    "plain": "def f(scaler, optimizer, loss, ps):\n    scaler.scale(loss).backward()\n    clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "one branch": "def f(scaler, optimizer, loss, ps, a):\n    scaler.scale(loss).backward()\n    if a:\n        scaler.unscale_(optimizer)\n    clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "variable": "def f(scaler, optimizer, loss, ps):\n    scaled = scaler.scale(loss)\n    scaled.backward(); clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "helper": "def go(l, s): s.scale(l).backward()\ndef f(scaler, optimizer, loss, ps):\n    go(loss, scaler)\n    clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "closure": "def f(scaler, optimizer, loss, ps):\n    def go():\n        scaler.scale(loss).backward()\n    go()\n    clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "comprehension": "def f(scaler, optimizer, losses, ps):\n    {l: scaler.scale(l).backward() for l in losses}\n    clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "on self": "class T:\n    def __init__(self, o):\n        self.amp = torch.amp.GradScaler()\n        self.o = o\n    def f(self, loss, ps):\n        self.amp.scale(loss).backward()\n        clip(ps, 1.0)\n        self.amp.step(self.o); self.amp.update()\n",
    "try": "def f(scaler, optimizer, loss, ps):\n    try:\n        scaler.scale(loss).backward()\n    finally:\n        clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "with": "def f(scaler, optimizer, loss, ps):\n    with torch.no_grad() as _, open('x'):\n        scaler.scale(loss).backward()\n        clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "match": "def f(scaler, optimizer, loss, ps, a):\n    match a:\n        case 1:\n            scaler.unscale_(optimizer)\n        case _:\n            scaler.scale(loss).backward()\n    clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n",
    "held in a dictionary": "def f(state, loss, ps):\n    state['scaler'].scale(loss).backward()\n    clip(ps, 1.0)\n    state['scaler'].step(state['optimizer']); state['scaler'].update()\n",
    "clipped by hand": "def f(scaler, optimizer, loss, ps):\n    scaler.scale(loss).backward()\n    norm = 1.0\n    for p in ps:\n        p.grad.mul_(1.0 / norm) if False else p.grad.clamp_(-1, 1)  # clip(ps\n    scaler.step(optimizer); scaler.update()\n",
}


@pytest.mark.parametrize("case", BROKEN)
def test_clipping_of_scaled_gradients_is_found_at_its_line(case: str) -> None:
    text = HEAD + BROKEN[case]
    (line,) = lines(BROKEN[case])
    assert "clip(ps" in text.splitlines()[line - 1]


KEPT = {
    "right": f"def f(scaler, optimizer, loss, ps):\n    {RIGHT}\n",
    "the same condition twice": "def f(scaler, optimizer, loss, ps):\n    if scaler is not None:\n        scaler.scale(loss).backward(); scaler.unscale_(optimizer)\n    else:\n        loss.backward()\n    clip(ps, 1.0)\n    if scaler is None:\n        optimizer.step()\n    else:\n        scaler.step(optimizer); scaler.update()\n",
    "asked by name and by flag": "class T:\n    def __init__(self, o, amp):\n        self.amp = amp\n        self.scaler = torch.amp.GradScaler() if amp else None\n        self.optimizer = o\n    def f(self, loss, ps):\n        if self.amp:\n            self.scaler.scale(loss).backward(); self.scaler.unscale_(self.optimizer)\n        else:\n            loss.backward()\n        clip(ps, 1.0)\n        if self.scaler is not None:\n            self.scaler.step(self.optimizer); self.scaler.update()\n        else:\n            self.optimizer.step()\n",
    "accumulation": "def f(scaler, optimizer, loader, ps):\n    for i, loss in enumerate(loader):\n        scaler.scale(loss).backward()\n        if (i + 1) % 4 == 0:\n            scaler.unscale_(optimizer); clip(ps, 1.0); scaler.step(optimizer); scaler.update()\n",
    "two optimizers": "def f(scaler, optimizer_a, optimizer_b, la, lb, ps):\n    scaler.scale(la).backward(); scaler.unscale_(optimizer_a); scaler.step(optimizer_a)\n    scaler.scale(lb).backward(); scaler.unscale_(optimizer_b); scaler.step(optimizer_b)\n    scaler.update()\n",
    "optimizers in a loop": "def f(scaler, optimizers, loss):\n    for _ in range(9):\n        scaler.scale(loss).backward()\n        for o in optimizers:\n            scaler.unscale_(o)\n        for o in optimizers:\n            scaler.step(o)\n        scaler.update()\n",
    "a refusal": f"def f(scaler, optimizer, loss, ps):\n    if loss is None:\n        raise ValueError\n    {RIGHT}\n",
    "a bad loss is skipped": f"def f(scaler, optimizer, losses, ps):\n    for loss in losses:\n        if not torch.isfinite(loss):\n            continue\n        {RIGHT}\n",
    "an attribute read and then overwritten": "class T:\n    def __init__(self, o):\n        self.scaler = torch.amp.GradScaler()\n        self.n = 0\n        self.optimizer = o\n    def count(self):\n        self.n += 1\n    def f(self, model, loss):\n        self.scaler.scale(loss).backward()\n        n, self.n = self.n, 0\n        if model.automatic and not n:\n            return\n        self.scaler.step(self.optimizer)\n        if model.automatic:\n            self.scaler.update()\n",
    "a flag that another object sets": "class T:\n    def __init__(self, o):\n        self.scaler = torch.amp.GradScaler()\n        self.ready = False\n        self.optimizer = o\n    def f(self, loss):\n        self.scaler.scale(loss).backward()\n        self.scaler.step(self.optimizer)\n        if self.ready:\n            self.scaler.update()\ndef start(t):\n    t.ready = True\n",
    "a flag that a method sets which has no events": "class T:\n    def __init__(self, o):\n        self.scaler = torch.amp.GradScaler()\n        self.optimizer = o\n        self.late = False\n    def note(self):\n        self._note()\n    def _note(self):\n        self.late = True\n    def f(self, loss):\n        self.scaler.scale(loss).backward()\n        self.scaler.step(self.optimizer)\n        if self.late:\n            return\n        self.note()\n        if self.late:\n            self.scaler.update()\n",
}


@pytest.mark.parametrize("case", KEPT)
def test_sound_code_is_kept_and_seen(case: str) -> None:
    found = sites(ORDER, HEAD + KEPT[case])
    assert found
    assert all(site.ok for site in found)


@pytest.mark.parametrize("case", [case for case in KEPT if "attribute" in case or "flag" in case])
def test_a_value_that_other_code_may_set_is_not_taken_for_its_first(case: str) -> None:
    assert lines(KEPT[case], "amp-step-without-update") == []


def test_helper_that_is_walked_from_its_caller_is_not_judged_alone() -> None:
    body = "def finish(scaler, optimizer):\n    scaler.step(optimizer)\n\ndef f(scaler, optimizer, loss):\n    scaler.scale(loss).backward()\n    finish(scaler, optimizer)\n    scaler.update()\n"
    assert lines(body) == []
    assert lines(body, "amp-step-without-update") == []


def test_finding_carries_the_path_of_events_across_files() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/steps.py": "import torch\ndef shorten(ps):\n    torch.nn.utils.clip_grad_norm_(ps, 1.0)\n",
        "pkg/train.py": "from torch.amp import GradScaler\nfrom . import steps as s\ndef f(optimizer, loss, ps):\n    g = GradScaler()\n    g.scale(loss).backward()\n    s.shorten(ps)\n    g.step(optimizer)\n    g.update()\n",
    }
    (site,) = [site for site in sites(ORDER, files) if not site.ok]
    assert site.trace == ("scaled_backward pkg/train.py:5", "clip pkg/steps.py:3 (from pkg/train.py:6)")


@pytest.mark.parametrize(
    "body",
    [
        "def f(scaler, x):\n    scaler.fit(x)\n    scaler.update(x)\n",
        "def f(metrics, loss):\n    metrics.update(loss)\n    metrics.step()\n",
        f"def f(scaler, optimizer, loss, ps):\n    return 1\n    {RIGHT}\n",
    ],
)
def test_what_is_no_scaled_step_is_not_spoken_of(body: str) -> None:
    assert sites(ORDER, HEAD + body) == []


def test_function_with_too_many_paths_is_not_decided_rather_than_clean() -> None:
    turns = "".join(
        f"    if a{i}:\n        scaler.scale(loss{i}).backward()\n    x{i} = GradScaler() if b{i} else None\n    if x{i}:\n        x{i}.update()\n"
        for i in range(16)
    )
    found = sites(
        ORDER,
        f"import torch\nfrom torch.amp import GradScaler\ndef f(scaler, optimizer):\n{turns}    scaler.step(optimizer)\n    scaler.update()\n",
    )
    assert any(site.undecided for site in found)
    assert not any(site.ok for site in found)


STEP = "def step(scaler, optimizer, loss, ps):\n    scaler.scale(loss).backward()\n    clip(ps, 1.0)\n    scaler.step(optimizer); scaler.update()\n"


@pytest.mark.parametrize(
    "ending",
    [
        "raise SystemExit(step(*make()))\n",
        "step(*make())\nraise SystemExit\n",
        "def main():\n    step(*make())\n    raise SystemExit('done')\nif __name__ == '__main__':\n    main()\n",
    ],
)
def test_a_program_that_ends_by_raising_has_run_all_the_same(ending: str) -> None:
    assert lines(STEP + ending) == [5]


def test_an_error_that_ends_a_path_does_not_take_part() -> None:
    body = f"def f(scaler, optimizer, loss, ps, bad):\n    if bad:\n        scaler.scale(loss).backward(); clip(ps, 1.0)\n        raise SystemExit('no')\n    {RIGHT}\n"
    assert lines(body) == []


def test_what_a_walk_that_was_cut_came_to_is_walked_by_itself() -> None:
    turns = "".join(
        f"    x{n} = torch.amp.GradScaler() if b{n} else None\n    if x{n}:\n        x{n}.update()\n" for n in range(16)
    )
    turns += "".join(f"    if x{n}:\n        x{n}.update()\n" for n in range(16))
    wide = f"def wide(scaler, optimizer, loss, ps):\n{turns}    step(scaler, optimizer, loss, ps)\n"
    found = sites(ORDER, HEAD + STEP + wide)
    assert [site.line for site in found if not site.ok and not site.undecided] == [5]
    assert [site.message for site in found if site.undecided]


def test_innocent_helper_is_not_blamed_but_its_call() -> None:
    body = (
        "def shorten(ps):\n    clip(ps, 1.0)\n"
        "class T:\n    def __init__(self, o):\n        self.s = torch.amp.GradScaler()\n        self.o = o\n"
        "    def f(self, loss, ps):\n        self.s.scale(loss).backward()\n        shorten(ps)\n        self.s.step(self.o); self.s.update()\n"
    )
    (line,) = lines(body, "amp-clip-before-unscale")
    (itself,) = lines(body)
    assert (HEAD + body).splitlines()[line - 1].strip() == "shorten(ps)"
    assert (HEAD + body).splitlines()[itself - 1].strip() == "clip(ps, 1.0)"


def test_gradients_that_a_caller_clears_are_not_missed() -> None:
    body = "def norms(ps):\n    for p in ps:\n        p.grad.clamp_(-1, 1)\nclass S:\n    def __init__(self):\n        self.s = torch.amp.GradScaler()\n    def __call__(self, loss, optimizer, ps):\n        self.s.scale(loss).backward()\n        self.s.unscale_(optimizer)\n        norms(ps)\n        self.s.step(optimizer); self.s.update()\n"
    assert lines(body, "amp-missing-zero-grad") == []


FRAMEWORK = """
import torch
class Wrapped:
    def __init__(self, inner, scaler): self.inner, self.scaler = inner, scaler
    def step(self): self.scaler.step(self.inner); self.scaler.update()
    def zero_grad(self): self.inner.zero_grad()
class Engine:
    def __init__(self): self.scaler = torch.amp.GradScaler("cuda")
    def prepare(self, *parts): return tuple(self.wrap(part) for part in parts)
    def wrap(self, part): return Wrapped(part, self.scaler) if isinstance(part, torch.optim.Optimizer) else part
    def backward(self, loss): self.scaler.scale(loss).backward()
def main(model, loader):
    engine = Engine()
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer = engine.prepare(model, optimizer)
    for batch in loader:
        optimizer.zero_grad()
        engine.backward(model(batch))
        optimizer.step()
"""


def test_a_framework_in_the_program_itself_may_step_what_it_prepared() -> None:
    bare = FRAMEWORK.replace("    model, optimizer = engine.prepare(model, optimizer)\n", "")
    assert broken("amp-plain-step", FRAMEWORK) == []
    walked = FRAMEWORK.replace(
        "    def prepare(self, *parts): return",
        "    def prepare(self, *parts):\n        for p in parts: p.step()\n        return",
    )
    assert broken("amp-plain-step", walked) == []
    prepared = "    model, optimizer = engine.prepare(model, optimizer)\n"
    made = f"def made(engine, model, both):\n    optimizer = torch.optim.AdamW(model.parameters())\n{prepared}"
    made += "    if both: return model, optimizer\n    return model\ndef main"
    apart = FRAMEWORK.replace(prepared, "    model, optimizer = made(engine, model, True)\n").replace("def main", made)
    assert broken("amp-plain-step", apart) == []
    assert len(broken("amp-plain-step", bare)) == 1


def test_star_imports_in_a_circle_give_nothing() -> None:
    project = project_of({"a.py": b"from b import *\n", "b.py": b"from a import *\n"})
    assert project.classes == {}
    assert project.starred("name", project.modules["a.py"]) is None
