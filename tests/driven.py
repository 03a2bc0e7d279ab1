"""A project whose tests drive it: soundly, wrongly on purpose, and into faults of its own."""

from building import QUICK

LIBRARY = """
import torch


class Scaler(torch.amp.GradScaler):
    def step(self, optimizer):
        return super().step(optimizer)


def parts():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=4.0)


def loss_of(model, value):
    with torch.autocast("cpu", torch.bfloat16):
        return model(torch.full((2, 4), value)).float().mean()


def train_step(model, optimizer, scaler, value=1.0):
    scaler.scale(loss_of(model, value)).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def take(optimizer, scaler):  # the caller updates and clears
    scaler.step(optimizer)


def clips_too_early(model, optimizer, scaler):
    scaler.scale(loss_of(model, 1.0)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- clip
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def updates_too_early(model, optimizer, scaler):
    scaler.scale(loss_of(model, 1.0)).backward()
    scaler.unscale_(optimizer)
    scaler.update()  # <- update
    scaler.step(optimizer)
    optimizer.zero_grad()


def never_clears(model, optimizer, scaler):
    for _ in range(3):
        scaler.scale(loss_of(model, 1.0)).backward()
        scaler.step(optimizer)  # <- clear
        scaler.update()


def goes_round(model, optimizer, scaler, value):
    scaler.scale(loss_of(model, value)).backward()
    scaler.unscale_(optimizer)
    optimizer.step()  # <- round
    scaler.update()
    optimizer.zero_grad()


def asks_for_cuda(model, optimizer, scaler):
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.ones(2, 4)).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


class Forgiving(torch.amp.GradScaler):
    def step(self, optimizer):
        optimizer.step()


def unscales_twice(model, optimizer, scaler):
    scaler.scale(loss_of(model, 1.0)).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def run_all(calls):
    for call in calls:
        call()
"""

TESTS = """
import multiprocessing
import os
import pytest, torch
from pkg.core import *


@pytest.fixture
def three():
    return parts()


@pytest.mark.sound
def test_train(three):
    before = three[0].weight.clone()
    train_step(*three)
    train_step(*three)
    assert not torch.equal(before, three[0].weight)


@pytest.mark.sound
def test_overflow(three):
    before = three[0].weight.clone()
    for value in (1.0, float("inf"), 1.0):
        train_step(*three, value)
    assert three[2].get_scale() == 2.0


@pytest.mark.own
def test_wrong_order_on_purpose(three):
    model, optimizer, scaler = three
    scaler.scale(loss_of(model, 1.0)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    take(optimizer, scaler)
    scaler.update()


@pytest.mark.own
def test_parts_alone(three):
    model, optimizer, scaler = three
    for _ in range(3):
        scaler.scale(loss_of(model, 1.0)).backward()
        take(optimizer, scaler)
    assert scaler.get_scale() == 4.0


@pytest.mark.own
def test_project_calls_back(three):
    model, optimizer, scaler = three
    run_all([lambda: scaler.scale(loss_of(model, 1.0)).backward(),
             lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0),
             lambda: scaler.unscale_(optimizer), lambda: take(optimizer, scaler)])


@pytest.mark.own
def test_refusal(three):
    with pytest.raises(RuntimeError, match="already been called"):
        unscales_twice(*three)


@pytest.mark.own
def test_optimizer_without_scaler(three):
    model, optimizer, _ = three
    loss_of(model, float("inf")).backward()
    optimizer.step()


@pytest.mark.class_of_scaler
def test_own_scaler(three):
    model, optimizer, _ = three
    scaler = Scaler("cpu", init_scale=4.0)
    scaler.scale(loss_of(model, float("inf"))).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0


@pytest.mark.clip
def test_clips(three):
    clips_too_early(*three)


@pytest.mark.update
def test_updates(three):
    updates_too_early(*three)


@pytest.mark.clear
def test_clears(three):
    never_clears(*three)


@pytest.mark.round
@pytest.mark.parametrize("value", [1.0])
def test_round(three, value):
    goes_round(*three, value)


@pytest.mark.applied
def test_applied(three):
    model, optimizer, _ = three
    train_step(model, optimizer, Forgiving("cpu", init_scale=4.0), float("inf"))


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:User provided device_type")
def test_autocast_on_cuda(three):
    asks_for_cuda(*three)


@pytest.mark.on_cuda
def test_model_on_cuda(three):
    three[0].to("cuda")


@pytest.mark.sound
@pytest.mark.skip(reason="not today")
def test_skipped(three):
    clips_too_early(*three)


@pytest.mark.sound
@pytest.mark.xfail
def test_expected_to_fail(three):
    clips_too_early(*three)
    assert False


@pytest.mark.sound
def test_that_sees_the_recorder():
    import sys
    assert "gates_probe" not in sys.modules


@pytest.mark.sound
def test_forks_and_closes(three):
    if not (child := os.fork()):
        three[1].zero_grad()  # what it does is not told
        os._exit(0)
    os.waitpid(child, 0)
    os.closerange(700, 4096)
    train_step(*three)


@pytest.mark.sound
@pytest.mark.criterion("T1/AC2")
def test_marked(three):
    train_step(*three)
"""
MARKS = ("sound", "own", "class_of_scaler", "clip", "update", "clear", "round", "applied", "cuda", "on_cuda")
NAMES = ", ".join(f"'{mark}'" for mark in MARKS)
INI = f"[tool.pytest.ini_options]\npythonpath = ['.']\naddopts = '-p no:randomly {QUICK}'\nmarkers = [{NAMES}]\n"
PROJECT = {
    "pkg/__init__.py": "",
    "pkg/core.py": LIBRARY,
    "tests/test_core.py": TESTS,
    "tests/test_other.py": "def test_other():\n    assert True\n",
    "pyproject.toml": INI,
}
