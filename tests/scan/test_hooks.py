"""Functions that a program keeps under the names of events: which of them run where an event is fired."""

import textwrap

from gates.scan.engine import Scanner
from gates.scan.loading import load_rules
from gates.scan.program.reading import project_of

RULES = load_rules()
LOOP = """
import torch
from events import fire
class Run:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model.cuda(), optimizer
        self.scaler = torch.amp.GradScaler("cuda")
        self.losses = []
def train(model, optimizer, batches):
    run = Run(model, optimizer)
    for batch in batches:
        run.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            run.loss = run.model(batch.cuda()).mean()
        run.scaler.scale(run.loss).backward()
        fire("scaled", run)
        run.scaler.unscale_(run.optimizer)
        fire("unscaled", run)
        run.scaler.step(run.optimizer)
        run.scaler.update()
        fire("stepped", run)
    fire("finished", run)
"""
CLIP = """
def clip(run):
    torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
def note(run):
    run.losses.append(run.loss.item())
"""
BY_CALL = """
import torch
KEPT = {}
def on(event, hook):
    KEPT.setdefault(event, []).append(hook)
def fire(event, *values, **named):
    for hook in list(KEPT.get(event, ())):
        hook(*values, **named)
"""
BY_DECORATOR = """
import collections
import torch
KEPT = collections.defaultdict(list)
def on(event):
    def keep(hook):
        KEPT[event].append(hook)
        return hook
    return keep
def fire(event, run):
    return [hook(run) for hook in KEPT[event]]
"""
ALONE = """
import torch
KEPT = {}
def on(event, hook):
    KEPT[event] = hook
def fire(event, run):
    hook = KEPT.get(event)
    if hook is not None:
        hook(run)
"""
BY_NAME = """
import torch
class Bus:
    def __init__(self):
        self.kept = {}
    def adopt(self, plugin):
        for name in dir(plugin):
            self.kept.setdefault(name, []).append(getattr(plugin, name))
    def __call__(self, event, run):
        for hook in self.kept.get(event, []):
            hook(run)
class Plugin:
    def CLIPS(self, run):
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
    def NOTES(self, run):
        run.losses.append(run.loss.item())
BUS = Bus()
BUS.adopt(Plugin())
def fire(event, run):
    BUS(event, run)
"""


def found(events: str, rule: str) -> list[str]:
    """Return the lines that break a rule, in a loop that fires events."""
    files = {"loop.py": textwrap.dedent(LOOP), "events.py": textwrap.dedent(events)}
    sites = Scanner(project_of({path: text.encode() for path, text in files.items()})).sites(RULES[rule])
    return [files[s.path].splitlines()[s.line - 1].strip() for s in sites if not s.ok and not s.undecided]


def kept(style: str, clips: str, notes: str) -> str:
    """Return the code that keeps one hook that clips, and one that reads the loss."""
    if style is BY_NAME:
        return style.replace("CLIPS", clips).replace("NOTES", notes)
    if style is BY_DECORATOR:
        return style + CLIP.replace("def clip", f'@on("{clips}")\ndef clip').replace(
            "def note", f'@on("{notes}")\ndef note'
        )
    return f'{style}{CLIP}on("{clips}", clip)\non("{notes}", note)\n'


def test_what_is_handed_on_as_rest_stays_the_same_object() -> None:
    body = """
        def step(scaler, optimizer):
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        on("step", step)
        def learn(model, optimizer, batches):
            scaler = torch.amp.GradScaler("cuda")
            for batch in batches:
                optimizer.zero_grad()
                scaler.scale(model(batch)).backward()
                fire("step", HANDED)
    """
    for handed in ("scaler, optimizer", "scaler=scaler, optimizer=optimizer"):
        events = BY_CALL + textwrap.dedent(body).replace("HANDED", handed)
        assert found(events, "amp-missing-zero-grad") == []
        cleared = events.replace("        optimizer.zero_grad()\n", "")
        assert found(cleared, "amp-missing-zero-grad") == ["scaler.step(optimizer)"]
        twice = events.replace("        fire(", "        scaler.unscale_(optimizer)\n        fire(")
        assert found(twice, "amp-unscale-twice") == ["scaler.unscale_(optimizer)"]
