"""What analyses see in a file of what stands in another: arms in a table, a method left open, a device set once."""

import textwrap
from collections.abc import Mapping

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
