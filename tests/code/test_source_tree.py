"""The implementation as it stands: symbols traced through re-exports, and what they really use."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, written
from symbols import Files, traced, tree

from gates.code.symbols import refuse_unknown_names
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.source_tree import SourceTree


def use_lines(tmp_path: Path, body: str, name: str = "torch.amp.GradScaler") -> tuple[int, ...]:
    return traced(tmp_path, body, "pkg.m:make", name).uses[0].lines


CLASS = "import functools\n\nclass A:\n    x = 1\n\n    @functools.cache\n    def go(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("symbol", "place"), [("pkg.m:A", "pkg/m.py:3-8"), ("pkg.m:A.go", "pkg/m.py:6-8"), ("pkg.m:A.x", "pkg/m.py:4")]
)
def test_symbol_has_the_lines_of_its_definition(tmp_path: Path, symbol: str, place: str) -> None:
    assert str(traced(tmp_path, CLASS, symbol).location) == place


@pytest.mark.parametrize(
    "names", ["from .m import A", "from pkg.m import A", "from .m import B as A", "from .n import A"]
)
def test_reexport_is_followed_to_the_definition(tmp_path: Path, names: str) -> None:
    files: Files = {
        "pkg/__init__.py": names + "\n",
        "pkg/m.py": "\nclass A:\n    def go(self): return 1\nB = A\n",
        "pkg/n.py": "from pkg.m import A\n",
    }
    found = traced(tmp_path, files, "pkg:A")
    assert found.location and found.location.path == "pkg/m.py"


def test_reexports_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    found = traced(tmp_path, {"pkg/a.py": "from .b import X\n", "pkg/b.py": "from .a import X\n"}, "pkg.a:X")
    assert (found.location, bool(found.problem)) == (None, True)


@pytest.mark.parametrize("names", ["from .m import A", "from pkg.m import A"])
def test_src_layout(tmp_path: Path, names: str) -> None:
    files: Files = {"src/pkg/m.py": CLASS, "src/pkg/__init__.py": names + "\n"}
    assert str(traced(tmp_path, files, "pkg.m:A", where="src/pkg").location) == "src/pkg/m.py:3-8"
    again = tree(tmp_path / "again", files, {"symbol": "pkg:A"}, where="src/pkg").symbols[0]
    assert str(again.location) == "src/pkg/m.py:3-8"


UNREADABLE: dict[str, str | bytes] = {
    "syntax": "def f(:\n",
    "bytes": b"x = '\xff'\n",
    "zero": b"x = 1\0\n",
    "size": "x = 1\n" * 400_000,
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_file_that_cannot_be_read_is_not_checked_and_never_clean(tmp_path: Path, case: str) -> None:
    seen = tree(tmp_path, UNREADABLE[case], {"symbol": "pkg.m:f"}, {"rule": "no-cuda-amp"})
    assert (seen.symbols[0].location, seen.symbols[0].checked) == (None, False)
    (problem,) = seen.unparsed
    assert problem.startswith("pkg/m.py:")


def test_unknown_rule_is_a_problem_that_names_those_that_are(tmp_path: Path) -> None:
    (trace,) = tree(tmp_path, {}, {"rule": "no-such-rule"}).rules
    assert "no-cuda-amp" in trace.problem


def test_rule_is_applied_to_every_file(tmp_path: Path) -> None:
    files: Files = {
        "pkg/a.py": "import torch\ntorch.amp.autocast('cpu')\n",
        "pkg/b.py": "from torch.cuda.amp import autocast as a\na()\n",
    }
    (trace,) = tree(tmp_path, files, {"rule": "no-cuda-amp"}).rules
    assert [(str(site.location), site.ok) for site in trace.sites] == [
        ("pkg/a.py:2", True), ("pkg/b.py:1", False), ("pkg/b.py:2", False),
    ]  # fmt: skip


def test_folder_without_python_is_unavailable(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"pkg/readme.txt": "x", "pkg/.hidden.py": "x", "pkg/__pycache__/m.py": "x"})
    with pytest.raises(EvidenceUnavailable, match="no Python file in pkg"):
        SourceTree.collect(a_task(), a_context(root))


USED = {
    "called": "import torch\ndef make():\n    return torch.amp.GradScaler()\n",
    "alias": "from torch.amp import GradScaler as GS\ndef make():\n    return GS()\n",
    "passed on": "from torch.amp import GradScaler\ndef make():\n    return build(GradScaler)\n",
    "extended": "from torch import amp\n\nclass make(amp.GradScaler): pass\n",
    "in a default": "from torch import amp\ndef make(\n    kind=amp.GradScaler):\n    return kind\n",
}


@pytest.mark.parametrize("case", USED)
def test_use_is_found_with_its_line(tmp_path: Path, case: str) -> None:
    assert use_lines(tmp_path, USED[case]) == (3,)


UNUSED = {
    "dead": "import torch\ndef make():\n    if False:\n        torch.amp.GradScaler()\n",
    "bare name": "import torch\ndef make():\n    torch.amp.GradScaler\n",
    "annotation": "from torch import amp\ndef make(x: amp.GradScaler) -> amp.GradScaler:\n    y: amp.GradScaler\n",
    "type test": "import torch\ndef make(x):\n    return isinstance(x, torch.amp.GradScaler)\n",
    "except": "import torch\ndef make():\n    try:\n        pass\n    except torch.amp.GradScaler:\n        pass\n",
    "only imported": "def make():\n    from torch.amp import GradScaler\n",
    "elsewhere": "import torch\ndef make(): return 1\ndef other(): torch.amp.GradScaler()\n",
    "other": "import torch\ndef make(): torch.amp.GradScaler2(); torch.cuda.amp.GradScaler()\n",
    "of the same name": "from mine import GradScaler\ndef make(): GradScaler()\n",
    "shadowed": "from torch.amp import GradScaler\ndef make(GradScaler): GradScaler()\n",
    "a parameter of a method": "import torch\nclass make:\n  def go(self, torch): torch.amp.GradScaler()\n",
    "a parameter": "import torch\ndef make(torch):\n    return [torch.amp.GradScaler() for _ in range(2)]\n",
    "a variable around it": "import torch\ndef make(a):\n  torch = a\n  def i(): torch.amp.GradScaler()\n  i()\n",
    "assigned to": "import torch\ndef make(x): torch.amp.GradScaler = x\n",
    "deleted": "import torch\ndef make(x): del torch.amp.GradScaler\n",
}


@pytest.mark.parametrize("case", UNUSED)
def test_mention_is_no_use(tmp_path: Path, case: str) -> None:
    assert use_lines(tmp_path, UNUSED[case]) == ()


FOUND = {
    "tuple": ("f, g = 1, 2\n", "f"),
    "loop": ("for f in (1, 2): pass\n", "f"),
    "with": ("with open('x') as f: pass\n", "f"),
    "walrus": ("(f := 1)\n", "f"),
    "constant": ("f = False\n", "f"),
    "fallback": ("try:\n    def f(): return 1\nexcept ImportError:\n    f = None\n", "f"),
    "imported fallback": ("try:\n    def f(): return 1\nexcept ImportError:\n    from .nothere import f\n", "f"),
    "on self": ("class A:\n    def __init__(self):\n        self.f = 1\n", "A.f"),
    "star": ("from .other import *\n", "f"),
    "not ascii": ("def \u00e9(): return 1\n", "\u00e9"),
}


@pytest.mark.parametrize("case", FOUND)
def test_every_way_to_define_a_name_is_found(tmp_path: Path, case: str) -> None:
    text, name = FOUND[case]
    files: Files = {"pkg/m.py": text, "pkg/other.py": "def f(): return 1\n"}
    assert traced(tmp_path, files, f"pkg.m:{name}").location is not None


@pytest.mark.parametrize(
    ("text", "name"),
    [("class A(B):\n    pass\n", "A.f"), ("def __getattr__(name): return 1\n", "f"), ("A = B\n", "A.f")],
)
def test_what_reading_cannot_decide_is_not_checked(tmp_path: Path, text: str, name: str) -> None:
    assert traced(tmp_path, text, f"pkg.m:{name}").checked is False


def test_package_hides_the_module_of_its_name(tmp_path: Path) -> None:
    files: Files = {"pkg/core.py": "def f(): return 1\n", "pkg/core/__init__.py": ""}
    assert traced(tmp_path, files, "pkg.core:f").location is None


def test_symbol_outside_of_the_implementation_is_refused(tmp_path: Path) -> None:
    trace = traced(tmp_path, {"other/__init__.py": "", "other/m.py": "def f(): return 1\n"}, "other.m:f")
    assert "outside of the task's implementation" in trace.problem


def test_module_is_found_where_the_implementation_lies(tmp_path: Path) -> None:
    files: Files = {"packages/one/src/deep/m.py": "def f(): return 1\n"}
    trace = traced(tmp_path, files, "deep.m:f", where="packages/one/src/deep")
    assert str(trace.location) == "packages/one/src/deep/m.py:1"


@pytest.mark.parametrize(
    "body",
    [
        "def make():\n    amp = torch.amp\n    return amp.GradScaler()\n",
        "def make():\n    @register\n    def hook():\n        return torch.amp.GradScaler()\n",
        "class make:\n    scaler = torch.amp.GradScaler\n",
        "def make(self):\n    self.scaler = torch.amp.GradScaler\n",
        "class make:\n    def go(self, by=torch.amp.GradScaler):\n        with by as torch:\n            torch.x()\n",
        "class make:\n    def go(self):\n        torch.amp.GradScaler()\n    def no(self, torch):\n        pass\n",
    ],
)
def test_use_by_another_name_or_in_another_scope_is_one(tmp_path: Path, body: str) -> None:
    assert len(use_lines(tmp_path, f"import torch\n\n{body}")) == 1


MODULE = "from torch.amp import GradScaler as GS\nfrom pkg.other import clip\ndef own(): return 1\n"
WRITTEN = MODULE + "def make(loss):\n    GS(); clip(); own(); loss.backward()\n    return getattr(loss, 'x')\n"
NAMES = {
    "as it is written": "GS", "in full": "torch.amp.GradScaler", "as module and name": "torch.amp:GradScaler",
    "of the module itself": "own", "of it, in full": "pkg.m.own", "of it, as module and name": "pkg.m:own",
    "of another module": "pkg.other:clip", "by its import": "clip", "a method": "loss.backward",
    "where it was given on": "pkg:clip",
}  # fmt: skip
FILES: dict[str, str | bytes] = {
    "pkg/__init__.py": "from .other import clip\n", "pkg/other.py": "def clip(): return 1\n", "pkg/m.py": WRITTEN,
}  # fmt: skip


@pytest.mark.parametrize("case", NAMES)
def test_name_is_found_however_it_is_written(tmp_path: Path, case: str) -> None:
    assert traced(tmp_path, FILES, "pkg.m:make", NAMES[case]).uses[0].lines == (5,)


def test_name_that_may_be_looked_up_is_told_apart(tmp_path: Path) -> None:
    found = traced(tmp_path, FILES, "pkg.m:make", "torch.amp.autocast", "torch.amp.GradScaler")
    assert [(use.lines, use.looked_up) for use in found.uses] == [((), True), ((5,), False)]
    assert not traced(tmp_path / "own", FILES, "pkg.m:own", "torch.amp.autocast").uses[0].looked_up


NO_SUCH = {
    "GradScalr": "no such name 'GradScalr' in pkg/m.py; did you mean 'GradScaler'?",
    "clp": "no such name 'clp' in pkg/m.py; did you mean 'clip'?",
    "pkg.other:clp": "no such name 'pkg.other:clp': pkg/other.py defines no 'clp'; did you mean 'clip'?",
    "pkg.other.clp": "no such name 'pkg.other.clp': pkg/other.py defines no 'clp'; did you mean 'clip'?",
    "pkg.othr:clip": "no such name 'pkg.othr:clip': there is no module 'pkg.othr' in the project",
    "torch.amp.GradScalr": "", "torch.amp:GradScalr": "", "GS": "", "print": "", "pkg.other:clip": "", "loss.step": "",
}  # fmt: skip


@pytest.mark.parametrize("name", NO_SUCH)
def test_name_of_nothing_is_refused_before_anything_runs(tmp_path: Path, name: str) -> None:
    root = written(tmp_path / "project", FILES)
    task = a_task(implementation=["pkg"], criteria=[a_criterion(code=[{"symbol": "pkg.m:make", "uses": [name]}])])
    if not NO_SUCH[name]:
        refuse_unknown_names(task, root)
        return
    with pytest.raises(UsageError) as error:
        refuse_unknown_names(task, root)
    assert str(error.value) == f"tasks/T1.yaml:1: {NO_SUCH[name]}"


ASKS = {
    "the modules": "    if 'pytest' in sys.modules:\n        return 1\n    return 2\n",
    "the environment": "    return 1 if os.environ.get('PYTEST_CURRENT_TEST') else 2\n",
    "the environment by another way": "    while os.getenv('PYTEST_VERSION') and x:\n        x = 0\n    return x\n",
}
ASKS_NOT = {
    "another module": "    if 'numpy' in sys.modules:\n        return 1\n    return 2\n",
    "another variable": "    return 1 if os.environ.get('HOME') else 2\n",
    "a text": "    if 'pytest' in x:\n        return 1\n    return 2\n",
    "the name of the test, for a label": "    return os.environ.get('PYTEST_CURRENT_TEST', '')\n",
}
AROUND = "import os, sys\n" * 8 + "def f(x=0):\n"


@pytest.mark.parametrize("case", ASKS)
def test_code_that_asks_whether_a_test_looks_on_is_told(tmp_path: Path, case: str) -> None:
    (found,) = tree(tmp_path, AROUND + ASKS[case], {"symbol": "pkg.m:f"}).watchful
    assert (found.symbol, found.location.path, (found.location.line or 0) >= 9) == ("pkg.m:f", "pkg/m.py", True)


@pytest.mark.parametrize("case", ASKS_NOT)
def test_code_that_asks_for_something_else_is_not(tmp_path: Path, case: str) -> None:
    assert tree(tmp_path, AROUND + ASKS_NOT[case], {"symbol": "pkg.m:f"}).watchful == ()
    assert tree(tmp_path, f"import pytest\n{AROUND}{ASKS['the modules']}", {"symbol": "pkg.m:f"}).watchful == ()
