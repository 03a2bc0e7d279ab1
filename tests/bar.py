"""Builders for what is judged of the bar itself: goalposts that stand, waivers, and little repositories."""

import os
import subprocess
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from gates.check import RunDate
from gates.checks.policy.judge import Goalposts, Mode
from gates.checks.policy.moves import Move, Part
from gates.model import Location

TODAY = date(2026, 3, 1)


def unmoved(*moves: Move, **changes: Any) -> Goalposts:
    """Goalposts that all stand where they stood, save for the moves given."""
    facts = {"how": "git", "base": "main", "commit": "b" * 40, "mode": Mode.BAR, "moves": moves, "unread": ()}
    return Goalposts.model_validate({**facts, **changes})


def a_move(part: Part = Part.BAR, **changes: Any) -> Move:
    """A threshold that was lowered."""
    where = Location(path="tasks/T1.yaml", line=14)
    facts = {"part": part, "what": "AC2 speedup at_least", "before": "1.5", "after": "1.2", "location": where}
    return Move.model_validate({**facts, **changes})


def a_waiver(days: int = 100, **changes: Any) -> dict[str, Any]:
    """A waiver of AC2 that ends so many days after TODAY."""
    facts: dict[str, Any] = {
        "criterion": "AC2",
        "reason": "the new card comes in spring",
        "owner": "ada",
        "expires": (TODAY + timedelta(days)).isoformat(),
        "line": 20,
    }
    return {**facts, **changes}


def on(today: date = TODAY) -> RunDate:
    """The day of a run."""
    return RunDate(how="a clock", today=today)


def git(folder: Path, *words: str) -> str:
    """Run git in a folder as nobody in particular, whatever the user's settings are."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", *words],
        cwd=folder, env={**os.environ, **own}, capture_output=True, check=True, timeout=300,
    )  # fmt: skip
    return done.stdout.decode().strip()


def committed(folder: Path, message: str = "state") -> str:
    """Commit everything in a folder, in a repository that is made where there is none; return the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")
