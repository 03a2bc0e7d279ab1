"""Arms for tests: a tiny project whose steps do what a test needs, and plans that end quickly."""

import sys
from pathlib import Path
from typing import Any

from building import PATIENCE_S, written

from gates.measuring.bench import Launch, launch
from gates.measuring.session import Plan
from gates.task.measurement import Arm, Measurement

STEPS = """
import asyncio, dataclasses, functools, io, json, os, sys, time
from concurrent.futures import ThreadPoolExecutor

IMPORTED_BY = os.getpid()

def tells():
    return lambda: IMPORTED_BY

def work(loops=2000, says="", times=1):
    def step():
        return sum(i * i for i in range(loops))
    os.write(1, (says * times).encode())
    return step

def naps(milliseconds):
    return lambda: time.sleep(milliseconds / 1000)

def raises():
    raise ValueError("no step today")

def dies(after=0, code=9):
    calls = []
    def step():
        calls.append(1)
        if len(calls) > after:
            os._exit(code)
    return step

def dies_anew():
    began = __file__ + ".began"
    again = os.path.exists(began)
    open(began, "w").close()
    return dies() if again else work()

def hangs():
    return lambda: time.sleep(60)

def no_step():
    return 42

async def _coroutine():
    return 1

def coroutine():
    return _coroutine

class Lazy:
    def __iter__(self):
        return iter([1])

@dataclasses.dataclass
class Pair:
    left: int
    def __iter__(self):
        return iter([self.left])

def gives(name):
    made = {"map": lambda: map(abs, [1]), "iterator": lambda: iter([1]), "lazy": Lazy, "future": asyncio.Future,
            "list": lambda: [1], "dict": dict, "text": str, "pair": lambda: Pair(1), "buffer": io.BytesIO,
            "range": lambda: range(3), "class": lambda: list, "nothing": lambda: None,
            "function": lambda: lambda: 1, "part": lambda: functools.partial(abs, 1),
            "pooled": lambda: ThreadPoolExecutor(1).submit(time.sleep, 60)}
    asyncio.set_event_loop(asyncio.new_event_loop())
    return made[name]

def out_of_memory():
    def step():
        raise MemoryError("cannot allocate 8 GiB")
    return step

def holds(megabytes):
    kept = []
    def step():
        kept.append(bytearray(megabytes << 20))
        kept.clear()
    return step
"""

WORKER = """
import json, os, sys, time
out = os.fdopen(int(os.environ["GATES_WORKER"]), "w")
device = {"type": "cpu", "name": "a cpu"}
print(json.dumps({"hello": "gates.worker/1", "device": device}), file=out, flush=True)
for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "stop":
        break
    if order["do"] == "collect":
        print('{"collected": true}', file=out, flush=True)
        continue
    begun = time.perf_counter()
    time.sleep(PAUSE)
    told = {"ran": order["steps"], "wall_s": time.perf_counter() - begun}
    CHANGE
    print(json.dumps(told), file=out, flush=True)
"""


def a_folder(root: Path, **workers: str) -> Path:
    """A folder with the module `steps`, and workers that speak the protocol with a change to what they tell."""
    pause = {"slow": "0.05", "even": (even := "float(sys.argv[1]) * order['steps']")}
    workers["even"] = f"told['wall_s'] = {even}"  # however long it waited for a processor
    changed = {
        f"{name}.py": WORKER.replace("CHANGE", change).replace("PAUSE", pause.get(name, "0.002"))
        for name, change in workers.items()
    }
    return written(root, {"steps.py": STEPS, **changed})


def started(root: Path, *, seed: int = 1, **arm: Any) -> Launch:
    """How an arm of that folder is started."""
    return launch(Arm.model_validate(arm), python=sys.executable, paths=[root], threads=1, seed=seed)


def a_plan(root: Path, arms: dict[str, dict[str, Any]], segment_s: float = 0.002, **changes: Any) -> Plan:
    """A plan of short segments; nothing ends by its budget, unless it is given another."""
    facts = {"id": "bench", "arms": arms, "budget_s": 1e4, "clock": "wall", **changes}
    ways = {name: (lambda seed, arm=arm: started(root, seed=seed, **arm)) for name, arm in arms.items()}
    return Plan(Measurement.model_validate(facts), ways, PATIENCE_S, segment_s)
