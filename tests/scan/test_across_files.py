"""What analyses see in a file of what stands in another: arms in a table, a method left open, a device set once."""

import textwrap
from collections.abc import Mapping

import pytest

from gates.scan.engine import Scanner
from gates.scan.loading import load_rules
from gates.scan.program.reading import project_of

RULES = load_rules()
TABLE = """
    import torch
    WAYS: dict[str, dict] = {"fp32": {"kind": None}, "bf16": {"kind": torch.bfloat16}}
"""
COMPARISON = """
    import torch
    from tables import WAYS
    def compare(train):
        found = {}
        for i, (name, way) in enumerate(WAYS.items()):
            torch.manual_seed(7 + i)
            found[name] = train(**way)
        return found
"""
COMPARISON_BY_FILE = """
    import torch
    import tables
    def compare(train):
        found = {}
        for i, (name, way) in enumerate(tables.WAYS.items()):
            torch.manual_seed(7 + i)
            found[name] = train(**way)
        return found
"""
BASE = """
    import abc
    class Runner(abc.ABC):
        @abc.abstractmethod
        def rate(self, batch): ...
        def validate(self):
            self.net.eval()
            for batch in self.held_out:
                self.total += self.rate(batch.cuda()).detach()
"""
WORDS = """
    import torch
    from base import Runner
    class Words(Runner):
        def rate(self, batch):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return self.net(batch).mean()
"""
SETTINGS = """
    import torch
    device = torch.device("cpu")
"""
TRAINING = """
    from settings import device
    def train(model, optimizer, loader):
        model.to(device)
        for batch in loader:
            loss = model(batch.to(device=device)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item())
"""
CHOSEN = """
    import torch
    def parse(parser):
        parser.add_argument("--device", default="cpu")
"""


def lines(rule: str, files: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return where a rule finds fault in a program of several files."""
    texts = {path: textwrap.dedent(text).lstrip("\n") for path, text in files.items()}
    sites = Scanner(project_of({path: text.encode() for path, text in texts.items()})).sites(RULES[rule])
    return [(site.path, site.line) for site in sites if not site.ok]


@pytest.mark.parametrize("text", [COMPARISON, COMPARISON_BY_FILE])
def test_a_seed_for_each_arm_of_a_table_that_is_imported(text: str) -> None:
    """Each arm of a table of another file gets a seed of its own."""
    files = {"tables.py": TABLE, "compare.py": text}
    assert lines("bench-arms-different-seeds", files) == [("compare.py", 6)]


def test_an_evaluation_whose_forward_pass_is_left_to_another_file() -> None:
    """The loop and the forward pass are both told of."""
    found = lines("eval-without-no-grad", {"base.py": BASE, "words.py": WORDS})
    assert found == [("base.py", 7), ("words.py", 6)]


def test_a_program_whose_only_device_is_the_cpu_waits_for_nothing() -> None:
    """Nothing is found where the device is the CPU; it is where it may be chosen, or nothing says which it is."""
    files = {"settings.py": SETTINGS, "training.py": TRAINING}
    found = [("training.py", 9)]
    assert lines("perf-host-read-in-loop", files) == []
    assert lines("perf-host-read-in-loop", {**files, "options.py": CHOSEN}) == found
    assert lines("perf-host-read-in-loop", {"training.py": TRAINING}) == found


PARTS = """
    PARTS = ("optimizer", "scaler")
    def save(trainer):
        return {part: getattr(trainer, part).state_dict() for part in PARTS}
"""
TRAINER = """
    import torch
    from parts import PARTS, save
    class Trainer:
        def __init__(self, model, optimizer):
            self.model, self.optimizer = model, optimizer
            self.scaler = torch.amp.GradScaler("cuda")
        def step(self, batch):
            optimizer, scaler = [getattr(self, part) for part in PARTS]
            optimizer.zero_grad()
            scaler.scale(self.model(batch)).backward()
            scaler.step(optimizer)
            scaler.update()
"""


def test_a_scaler_that_another_file_takes_by_its_name_is_used() -> None:
    assert lines("amp-unused-scaler", {"parts.py": PARTS, "trainer.py": TRAINER}) == []
