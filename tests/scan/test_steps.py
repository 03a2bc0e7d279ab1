"""What runs with each step of a training, in helpers, methods and callbacks of other files."""

import pytest

from gates.scan.engine import Scanner
from gates.scan.loading import load_rules
from gates.scan.program.reading import project_of

RULES = load_rules()
READ, SYNC, CACHE = "perf-host-read-in-loop", "perf-sync-in-loop", "perf-empty-cache-in-loop"
KEPT, TIMED, OPTIONS = "leak-graph-in-list", "bench-timing-without-sync", "perf-loader-options"
TRAIN = """
import torch
from helpers import *
def train(model, loader, optimizer, device="cuda"):
    helper, others = Helper(), [Other(), Helper()]
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {call}
"""
BASE = """
import torch
class Other:
    def see(self, value): pass
"""


def found(rule: str, helpers: str, train: str) -> list[tuple[str, int]]:
    """Return where a rule finds something in two files."""
    files = {"helpers.py": (BASE + helpers).encode(), "train.py": train.encode()}
    return [(site.path, site.line) for site in Scanner(project_of(files)).sites(RULES[rule]) if not site.ok]


def marked(helpers: str) -> list[tuple[str, int]]:
    """Return the lines that are to be found."""
    lines = (BASE + helpers).splitlines()
    return [("helpers.py", number) for number, line in enumerate(lines, 1) if "# <- here" in line]


SEEN = "class Helper(Other):\n    def __init__(self): self.kept, self.sum, self.parts = [], 0.0, {}\n"
DEFECTS = {
    "read of what a call hands over": (
        READ, SEEN + "    def see(self, value):\n        return value.item()  # <- here\n", "helper.see(loss.detach())"
    ),
    "read of one of many by name": (
        READ,
        SEEN + "    def see(self, **all):\n        for k, v in all.items():\n            if torch.is_tensor(v):\n"
        "                self.parts[k] = float(v)  # <- here\n",
        "helper.see(loss=loss.detach(), n=3)",
    ),
    "read by a callback in a list": (
        READ, SEEN + "    def see(self, value):\n        print(f'{value:.3f}')  # <- here\n",
        "for one in others: one.see(loss.detach())",
    ),
    "branch on a loss two calls away": (
        READ,
        (
            "def check(it, top):\n    if it > top:  # <- here\n        raise ValueError\n"
            "class Helper:\n    def __call__(self, it):\n        check(it.mean(), 10)\n"
        ),
        "helper(loss.detach())",
    ),
    "wait in a method that is inherited": (
        SYNC,
        (
            "class Clock:\n    def start(self):\n        torch.cuda.synchronize()  # <- here\n"
            "class Helper(Clock):\n    def start(self):\n        super().start()\n"
        ),
        "helper.start()",
    ),
    "wait where a block is entered": (
        SYNC,
        (
            "class Helper:\n    def __enter__(self):\n        torch.cuda.synchronize()  # <- here\n"
            "    def __exit__(self, *e): pass\n"
        ),
        "with helper: pass",
    ),
    "cache emptied by a function under another name": (
        CACHE, "def tidy():\n    torch.cuda.empty_cache()  # <- here\nclass Helper: pass\nclean = tidy\n", "clean()"
    ),
    "cache emptied by a hook that a list holds": (
        CACHE, "def tidy():\n    torch.cuda.empty_cache()  # <- here\nclass Helper: pass\nHOOKS = [tidy]\n",
        "for hook in HOOKS: hook()",
    ),
    "sum of attached losses": (
        KEPT, SEEN + "    def see(self, value):\n        self.sum = self.sum + value  # <- here\n", "helper.see(loss)"
    ),
    "list of attached losses by name": (
        KEPT,
        SEEN + "    def see(self, **all):\n        for k, v in all.items():\n"
        "            self.parts.setdefault(k, []).append(v)  # <- here\n",
        "helper.see(loss=loss)",
    ),
    "attached losses now and then": (
        KEPT, SEEN + "    def see(self, value):\n        self.kept.append(value)  # <- here\n",
        "if step % 10 == 0: helper.see(loss)",
    ),
}  # fmt: skip
SOUND = {
    "read now and then": (
        READ, SEEN + "    def see(self, value):\n        return value.item()\n",
        "if step % 50 == 0: helper.see(loss.detach())",
    ),
    "read after an early return": (
        READ,
        SEEN + "    def see(self, value, at):\n        if at % 50:\n            return\n        print(value.item())\n",
        "helper.see(loss.detach(), step)",
    ),
    "number that is handed over": (
        READ,
        SEEN + "    def see(self, value):\n        if hasattr(value, 'item'):\n            value = value.item()\n",
        "helper.see(step * 2)",
    ),
    "comparison on the device": (
        READ, SEEN + "    def see(self, value):\n        self.sum = torch.where(value > 3, 0 * value, value)\n",
        "helper.see(loss.detach())",
    ),
    "wait only where it is profiled": (
        SYNC,
        "class Helper:\n    def start(self):\n        if self.profiled:\n            torch.cuda.synchronize()\n",
        "helper.start()",
    ),
    "cache emptied when memory ran out": (
        CACHE, "class Helper: pass\ndef tidy():\n    torch.cuda.empty_cache()\n",
        "try: model(x)\n        except RuntimeError: tidy()",
    ),
    "losses that are cut off": (
        KEPT, SEEN + "    def see(self, value):\n        self.kept.append(value)\n", "helper.see(loss.detach())"
    ),
    "losses that the helper cuts off": (
        KEPT,
        SEEN + "    def see(self, value):\n        value = value.detach() if torch.is_tensor(value) else value\n"
        "        self.sum += value\n",
        "helper.see(loss)",
    ),
    "only the last loss": (
        KEPT, SEEN + "    def see(self, value):\n        self.sum = value\n", "helper.see(loss)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_of_a_helper_is_found_where_it_stands(name: str) -> None:
    rule, helpers, call = DEFECTS[name]
    assert found(rule, helpers, TRAIN.format(call=call)) == marked(helpers) != []


@pytest.mark.parametrize("name", SOUND)
def test_sound_helper_has_no_finding(name: str) -> None:
    rule, helpers, call = SOUND[name]
    assert found(rule, helpers, TRAIN.format(call=call)) == []


def test_call_is_to_blame_where_others_hand_the_helper_what_is_cut_off() -> None:
    helpers = SEEN + "    def see(self, value):\n        self.kept.append(value)\n"
    train = TRAIN.format(call="helper.see(loss.detach())\n        helper.see(loss)")
    assert found(KEPT, helpers, train) == [("train.py", 12)]


TIMING = """import time
def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
"""


@pytest.mark.parametrize(("work", "lines"), [("model(x)", [5]), ("model(x); torch.cuda.synchronize()", [])])
def test_function_that_times_what_it_is_handed(work: str, lines: list[int]) -> None:
    bench = (
        "import torch\nfrom helpers import timed\n"
        f"def bench(model, x):\n    def run():\n        {work}\n    model.to('cuda')\n    return timed(run)\n"
    )
    files = {"helpers.py": TIMING.encode(), "bench.py": bench.encode()}
    assert [s.line for s in Scanner(project_of(files)).sites(RULES[TIMED]) if not s.ok] == lines


WATCH = """import time
import torch
class Watch:
    def __enter__(self):
        {wait}
        self.begun = time.perf_counter()
    def __exit__(self, *error):
        self.took = time.perf_counter() - self.begun
"""


@pytest.mark.parametrize(
    ("wait", "body", "lines"),
    [
        ("torch.cuda.synchronize()", "model(x)", [8]),
        ("pass", "model(x)", [8]),
        ("torch.cuda.synchronize()", "model(x); torch.cuda.synchronize()", []),
    ],
)
def test_block_that_is_timed(wait: str, body: str, lines: list[int]) -> None:
    bench = (
        "import torch\nfrom watch import Watch\n"
        f"def bench(model, x):\n    model.to('cuda')\n    with Watch():\n        {body}\n"
    )
    files = {"watch.py": WATCH.format(wait=wait).encode(), "bench.py": bench.encode()}
    assert [s.line for s in Scanner(project_of(files)).sites(RULES[TIMED]) if not s.ok] == lines


LOADS = """import torch
from torch.utils.data import DataLoader
def made(data, workers=0, **more):
    return DataLoader(data, {options})
def train(model, data):
    for batch in made(data, {given}):
        model(batch.cuda()).backward()
"""


@pytest.mark.parametrize(
    ("options", "given", "lines"),
    [
        ("**more", "shuffle=True", [4]),
        ("**more", "num_workers=4, pin_memory=True", []),
        ("num_workers=workers, pin_memory=True", "shuffle=True", [4]),
        ("num_workers=workers, pin_memory=True", "workers=3", []),
    ],
)
def test_options_that_a_loader_is_handed(options: str, given: str, lines: list[int]) -> None:
    files = {"train.py": LOADS.format(options=options, given=given).encode()}
    assert [s.line for s in Scanner(project_of(files)).sites(RULES[OPTIONS]) if not s.ok] == lines


STEPPED = """
import torch
class Stepper:
    def __init__(self, optimizer, scaler): self.optimizer, self.scaler = optimizer, scaler
    def __call__(self, error, due=True):
        self.scaler.scale(error).backward()
        if due:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
"""
TRAINED = """
import torch
from helpers import Stepper
def epoch(model, loader, apply, device):
    total, seen = torch.zeros((), device=device), []
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        apply(loss / 2)
        {keep}
    return total
def main(model, loader, optimizer, epochs):
    apply = Stepper(optimizer, torch.amp.GradScaler("cuda"))
    for _ in range(epochs):
        epoch(model.cuda(), loader, apply, "cuda")
"""


@pytest.mark.parametrize(
    ("rule", "keep", "lines"),
    [
        (KEPT, "total += loss", [9]),
        (KEPT, "seen.append(loss)", [9]),
        (KEPT, "total += loss.detach()", []),
        (KEPT, "seen.append(x)", []),
        (READ, "total += loss.item()", [9]),
        (READ, "total += loss.detach()", []),
    ],
)
def test_an_object_that_is_called_takes_the_step(rule: str, keep: str, lines: list[int]) -> None:
    files = {"helpers.py": STEPPED.encode(), "train.py": TRAINED.format(keep=keep).encode()}
    sites = [site for site in Scanner(project_of(files)).sites(RULES[rule]) if not site.ok]
    assert [(site.path, site.line) for site in sites] == [("train.py", line) for line in lines]
