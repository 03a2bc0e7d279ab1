"""Contexts in orders of events: kept, chosen, made by what the program has for it; and loops that are no turns."""

import pytest
from scanning import broken, sites

MADE = {
    "a partial": ("", "cast = functools.partial(torch.autocast, 'cuda')", "cast()"),
    "one of two partials": (
        "",
        "cast = functools.partial(torch.autocast, 'cuda') if on else contextlib.nullcontext",
        "cast()",
    ),
    "what a function returns": (
        "def made(on):\n    return functools.partial(torch.autocast, 'cuda') if on else contextlib.nullcontext\n",
        "cast = made(on)",
        "cast()",
    ),
    "an attribute": (
        "class Policy:\n    def __init__(self, on):\n        self.cast = torch.autocast('cuda', enabled=on)\n",
        "policy = Policy(on)",
        "policy.cast",
    ),
    "a generator": (
        "@contextlib.contextmanager\ndef cast(on):\n    with torch.autocast('cuda', enabled=on):\n        yield\n",
        "",
        "cast(on)",
    ),
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("made", MADE)
def test_a_context_is_followed_to_what_makes_it(made: str, inside: bool) -> None:
    before, first, context = MADE[made]
    depth = 8 if inside else 4
    text = (
        f"import contextlib, functools\nimport torch\n{before}def step(model, batch, on):\n"
        f"    scaler = torch.amp.GradScaler('cuda')\n    {first or 'pass'}\n"
        f"    with {context}:\n        loss = model(batch)\n{' ' * depth}scaler.scale(loss).backward()\n"
    )
    assert len(broken("amp-backward-inside-autocast", text)) == inside


def test_a_context_manager_hides_none_of_its_block() -> None:
    text = """
    import contextlib
    import torch
    @contextlib.contextmanager
    def told(on):
        with torch.autocast("cuda", enabled=on):
            yield
        print("done")
    def step(scaler, optimizer, model, batch):
        with told(True):
            loss = model(batch)
        scaler.scale(loss).backward()
        with told(False):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    """
    assert broken("amp-clip-before-unscale", text) == ["m.py:14"]


@pytest.mark.parametrize("leaves", [True, False])
def test_what_leaves_a_block_leaves_its_context_and_its_function(leaves: bool) -> None:
    text = (
        "import contextlib\nimport torch\nscaler = torch.amp.GradScaler('cuda')\n"
        "@contextlib.contextmanager\ndef cleared():\n    optimizer.zero_grad()\n    yield\n    scaler.update()\n"
        "def step(model, batch, few):\n    with cleared():\n        scaler.scale(model(batch)).backward()\n"
        f"        if few:\n            {'return' if leaves else 'scaler.unscale_(optimizer)'}\n"
        "        scaler.unscale_(optimizer)\n    scaler.unscale_(optimizer)\n    scaler.step(optimizer)\n"
        "    scaler.update()\n"
    )
    assert len(broken("amp-unscale-twice", text)) == (not leaves)


def test_an_object_with_events_around_its_block_is_not_decided() -> None:
    text = """
    import torch
    class cleared:
        def __exit__(self, kind, error, where):
            scaler.update()
    scaler = torch.amp.GradScaler("cuda")
    def step(model, batch):
        with cleared():
            scaler.scale(model(batch)).backward()
            scaler.step(optimizer)
    """
    assert [site.undecided for site in sites("amp-step-without-update", text) if not site.ok] == [True]
