"""The parts of a task file on what is done at once and on how steps grow: what they refuse, with its place."""

from pathlib import Path

import pytest
from building import SMALL, loaded, refused

from gates.checks.concurrency import Concurrent
from gates.checks.scaling import Scale


def test_what_is_done_at_once_is_read(tmp_path: Path) -> None:
    text = """concurrency:
  - {call: "pkg.a:train", each: [[0], [{$call: "pkg.a:Config", kwargs: {seed: 1}}]], take: digest, criteria: [AC1]}
  - {shared: "pkg.a:Tracker", use: "pkg.a:log", read: "pkg.a:count", workers: 4, failure_rate: 0.01, expected: 4000}
"""
    call, shared = loaded(tmp_path, SMALL + text).part(Concurrent)
    assert (call.name, call.count, call.rounds) == ("pkg.a:train(0 | pkg.a:Config(seed=1))", 2, 20)
    assert (shared.count, shared.rounds) == (4, 300)
    assert shared.name == "pkg.a:log on one pkg.a:Tracker()"


def test_steps_and_their_sizes_are_read(tmp_path: Path) -> None:
    text = 'scaling: [{call: "pkg.a:make", over: {batch: [8, 16, 32]}, kwargs: {width: 4}, exponent: {at_most: 1.15}}]'
    (scale,) = loaded(tmp_path, SMALL + text).part(Scale)
    assert (scale.argument, scale.sizes, scale.of) == ("batch", (8, 16, 32), "step_time_s")
    assert scale.name == "step_time_s of pkg.a:make(width=4, batch=n)"


MISFITS = [
    ("concurrency: [{}]", "7:15: expected exactly one of 'call' and 'shared'"),
    ('concurrency: [{shared: "a:B"}]', "'shared' needs 'use'"),
    ('concurrency: [{call: "a:b", use: "a:c"}]', "'use' goes with 'shared'"),
    ('concurrency: [{call: "a:b", in: [processes]}]', "'in' is gone: threads alone are started"),
    ('concurrency: [{call: "a:b", each: [[1]]}]', "'each' needs two lists of arguments or more"),
    ('concurrency: [{call: "a:b", each: [[1], [2]], workers: 3}]', "no 'args', no 'workers'"),
    ('concurrency: [{call: "a:b", criteria: [AC2]}]', "unknown criterion 'AC2'"),
    ('scaling: [{call: "a:b", over: {n: [1, 2]}, exponent: {at_most: 1}}]', "needs 3 sizes or more"),
    ('scaling: [{call: "a:b", over: {n: [1, 4, 2]}, exponent: {at_most: 1}}]', "from the least to the largest"),
    ('scaling: [{call: "a:b", over: {n: [4, 5, 6]}, exponent: {at_most: 1}}]', "4 times the least, or more"),
    ('scaling: [{call: "a:b", over: {}, exponent: {at_most: 1}}]', "needs one name with its sizes"),
    ('scaling: [{call: "a:b", over: {n: [1, 2, 4]}, exponent: {at_least: 1}}]', "'at_least' is gone"),
    ('scaling: [{call: "a:b", over: {n: [1, 2, 4]}, kwargs: {n: 1}, exponent: {at_most: 1}}]', "in 'kwargs'"),
]


@pytest.mark.parametrize(("text", "said"), MISFITS)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, SMALL + text)
