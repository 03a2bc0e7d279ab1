"""Records many training steps from one process that has loaded torch: each in forks of it, as `Recording` would.

python record_all.py FOLDER CALL...    writes FOLDER/<name>.jsonl and FOLDER/<name>-overflow.jsonl, and how they ended.
"""

import gc
import json
import os
import sys
from pathlib import Path

import gates_probe.recorder.__main__ as recorder  # type: ignore[import-not-found]  # a copy, made by the test
import torch._dynamo  # noqa: F401  # else each fork would load it with its first optimizer

HERE = Path(__file__).parent


SECRET = "a secret of this test"


def record(call: str, journal: Path, overflow: dict[str, object] | None) -> bool:
    """Record one call in a fork; return whether it came to its end."""
    pid = os.fork()
    if not pid:
        asked = {"call": call, "args": [], "paths": [str(HERE)], "root": str(HERE), "overflow": overflow,
                 "secret": SECRET, "journal": str(journal)}  # fmt: skip
        question = journal.with_suffix(".json")
        question.write_text(json.dumps(asked), encoding="utf-8")
        sys.argv = ["recorder", str(question)]
        sys.stdout.flush()
        recorder.main()  # and leaves
    return os.waitpid(pid, 0)[1] == 0


def main() -> None:
    folder = Path(sys.argv[1])
    gc.freeze()  # no fork needs to look at what was there before it
    for call in sys.argv[2:]:
        name = call.partition(":")[2]
        journal = folder / f"{name}.jsonl"
        good = record(call, journal, None)
        lines = journal.read_text(encoding="utf-8").splitlines()
        told = [entry for line in lines for entry in json.loads(line.partition(" ")[2])]
        attempts = [entry for entry in told if entry["word"] == "attempt"]
        scaled = any(entry["word"] == "scaled_backward" for entry in told)
        through = any(entry["word"] == "step" and entry["enabled"] for entry in told)
        if good and attempts and (scaled or through):
            step = min(1, len(attempts) - 1)
            again = {"step": step, "scaled": scaled, "optimizer": attempts[step]["optimizer"]}
            good = record(call, folder / f"{name}-overflow.jsonl", again)
        print(name, good, flush=True)


if __name__ == "__main__":
    main()
