"""Random edits of a small project, each judged from kept evidence and anew: the verdicts must be the same.

`python -m benchmarks.kept_runs --edits 200` prints a line for each edit and ends with 1 where one differed.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

TASK = """id: T1
title: Prices
implementation: [shop]
tests: [tests]
entry_points:
  - {run: [python, -m, shop], criteria: [AC1]}
  - {run: [python, -c, "from shop import basket; assert [*basket.doubled([1])] == [2]"]}
  - {run: [python, -c, "from shop import basket; assert 'first' in basket.first.__doc__"]}
  - {run: [python, start.py]}
calculations:
  - {call: "shop.basket:total", criteria: [AC2], table: [{args: [[100, 200]], expected: 360}]}
leaks:
  - {call: "shop.basket:first", args: [[1, 2]], epochs: 20}
criteria:
  - {id: AC1, text: A price has its tax, code: [{symbol: "shop.price:gross"}], tests: [tests/test_price.py]}
  - {id: AC2, text: A basket is summed, code: [{symbol: "shop.basket:total"}], tests: [tests/test_basket.py]}
"""
PRICE = """RATE = 20


def gross(net):
    return net * (100 + RATE) // 100
"""
BASKET = """from shop.price import gross


def total(nets):
    return sum(gross(net) for net in nets)


def largest(nets):
    return max(nets, key=gross)


def first(nets):
    'Return the first.'
    return nets[0]


def doubled(nets):
    for net in nets:
        yield 2 * net
"""
MAIN = """from shop.basket import first
from shop.price import gross

assert first([3, 4]) == 3
print(gross(100))
"""
START = """import subprocess
import sys

CODE = "from shop.basket import largest; assert largest([3, 4]) == 4"
subprocess.run([sys.executable, "-c", CODE], check=True)
"""
TEST_PRICE = """import os
from pathlib import Path

from shop.price import gross


def test_gross():
    assert gross(100) == 120


def test_shop():
    assert os.environ.get("SHOP", "open") == "open"


def test_files():
    assert gross(int(Path("current/net.txt").read_text())) == int(Path("reports/golden.txt").read_text())
"""
TEST_BASKET = """from pathlib import Path

import money

from shop.basket import first, largest, total


def test_first():
    assert first([3, 4]) == 3


def test_largest():
    assert largest([3, 4]) == 4


def test_total():
    assert total([100]) == 120
    assert money.euros(total([100, 200])) <= int(Path("limits.txt").read_text())
"""
FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.', 'lib']\n",
    ".gitignore": "reports/\n.gates/\n__pycache__/\nlimits.txt\n",
    "tasks/T1.yaml": TASK,
    "shop/__init__.py": "",
    "shop/__main__.py": MAIN,
    "start.py": START,
    "shop/price.py": PRICE,
    "shop/basket.py": BASKET,
    "tests/test_price.py": TEST_PRICE,
    "tests/test_basket.py": TEST_BASKET,
    "limits.txt": "400\n",
    "v1/net.txt": "100\n",
    "v2/net.txt": "200\n",
    "reports/golden.txt": "120\n",
    "lib/money.py": "def euros(amount):\n    return amount\n",
}
OFTEN = 4  # as it was, for one that breaks something: single tests are taken where all pass
SWAPS = {  # one of the texts stands in the file, the first at the beginning
    "code": ("shop/price.py", "RATE = 20", "RATE = 19", "RATE = 20  # percent"),
    "a comment": ("shop/basket.py", "return sum", "return  sum", "# the sum\n    return sum"),
    "a body": ("shop/basket.py", "return nets[0]", "return nets[-1]", "return [*nets][0]"),
    "a program's body": ("shop/basket.py", "return max(", "return min(", "return (lambda *a, **b: max(*a, **b))("),
    "a docstring": ("shop/basket.py", "Return the first", "Return the last", "Give the first"),
    "a generator": ("shop/basket.py", "yield 2 * net", "yield 3 * net", "yield net + net"),
    "another body": ("shop/price.py", "return net *", "return 1 + net *", "return (100 + RATE) * net // 100 + 0 *"),
    "a test": ("tests/test_price.py", "== 120", "== 121"),
    "ignored data": ("limits.txt", "400", "300", "none"),
    "a library": ("lib/money.py", "return amount", "return 2 * amount"),
    "settings": ("pyproject.toml", "pythonpath", "addopts = '-k total'\npythonpath"),
    "a file among the reports": ("reports/golden.txt", "120", "240"),
    "the task": ("tasks/T1.yaml", "is summed", "is added up"),
}


def edit(name: str, project: Path, env: dict[str, str], choose: random.Random) -> None:
    """Make one edit of a kind."""
    if name in SWAPS:
        file, first, *others = SWAPS[name]
        put(project, file, FILES[file].replace(first, choose.choice([*[first] * OFTEN * len(others), *others])))
    elif name == "the environment":
        env["SHOP"] = choose.choice([*["open"] * OFTEN, "closed"])
    elif name == "a commit":
        git(project, "commit", "-q", "-a", "--allow-empty", "-m", str(choose.random()))
    elif name == "a branch":
        git(project, "checkout", "-q", "-B", choose.choice(["main", "other"]))
    elif name == "a link":
        point(project, choose.choice([*["v1"] * OFTEN, "v2"]))
    elif name == "a new test":
        put(project, "tests/test_new.py", f"def test_new():\n    assert {choose.choice('1' * OFTEN + '0')}\n")


def put(project: Path, name: str, text: str) -> None:
    """Write a file of the project."""
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text(text, encoding="utf-8")


def point(project: Path, folder: str) -> None:
    """Let the link of the project lead to a folder."""
    (project / "current").unlink(missing_ok=True)
    (project / "current").symlink_to(folder)


def git(project: Path, *words: str) -> None:
    """Run git in the project."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=project, check=True)  # noqa: S607  # the git that the user has


Found = tuple[int, list[str], list[tuple[str, ...]]]


def judged(project: Path, env: dict[str, str], *words: str) -> tuple[Found, str, float]:
    """Return what a run found, what it took of an earlier one, and its seconds."""
    begun = time.monotonic()
    argv = [sys.executable, "-m", "gates", "run", "T1", "--quiet", *words]
    done = subprocess.run(argv, cwd=project, env=env, capture_output=True, text=True, check=False)
    report = json.loads((project / "reports/T1/result.json").read_text(encoding="utf-8"))
    if done.returncode != report["verdict"]["exit_code"]:  # it is that of an earlier run
        raise SystemExit(f"the run ended with exit code {done.returncode}: {done.stderr}")
    # of BL023, which has a time to try mutants in, the lines may be others
    everything = (f for gate in report["gates"] for f in gate["findings"] if f["rule"] != "BL023")
    findings = sorted((f["rule"], f["outcome"], f["criterion"] or "", said(f)) for f in everything)
    statuses = [criterion["status"] for criterion in report["criteria"]]
    return (report["verdict"]["exit_code"], statuses, findings), report["taken"], time.monotonic() - begun


def said(finding: dict[str, str]) -> str:
    """Return what a finding says, but for the numbers of memory, which are others each time."""
    return finding["message"].partition(": what Python holds by")[0]


def main() -> int:
    """Make the edits one after the other and compare what is found from kept evidence and anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    choose, env = random.Random(asked.seed), {**os.environ, "CI": "", "SHOP": "open"}  # noqa: S311  # no secret
    differed, seconds, took = 0, dict.fromkeys(("taken", "in part", "anew"), 0.0), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name, text in FILES.items():
            put(project, name, text)
        point(project, "v1")
        git(project, "init", "-q", "-b", "main")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "a shop")
        judged(project, env)
        for number in range(1, asked.edits + 1):
            name = choose.choice([*SWAPS, "the environment", "a commit", "a branch", "a link", "a new test", "nothing"])
            edit(name, project, env, choose)
            kept, taken, kept_s = judged(project, env)
            fresh, _, fresh_s = judged(project, env, "--fresh")
            kind = "in part" if " of " in taken.partition("of the run")[0] else "taken" if taken else "anew"
            seconds[kind] += kept_s
            took[kind] += 1
            differed += kept != fresh
            same = "same" if kept == fresh else f"DIFFERENT: {kept[:2]}, {set(kept[2]) ^ set(fresh[2])}"
            print(f"{number:4} {name:16} {kind:11} {kept_s:5.1f} s, fresh {fresh_s:5.1f} s  {same}", flush=True)
    for kind, count in took.items():
        print(f"{count} runs {kind}, {seconds[kind] / count:.2f} s each")
    print(f"{differed} of {asked.edits} differed")
    return 1 if differed else 0


if __name__ == "__main__":
    raise SystemExit(main())
