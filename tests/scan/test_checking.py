"""Rules over a folder: files that cannot be read, broken rules, and what is remembered between runs."""

import gc
import weakref
from pathlib import Path
from unittest.mock import Mock

import pytest
from building import written
from scanning import WORDS

from gates.errors import UsageError
from gates.scan import checking
from gates.scan.checking import Checked, Scanner, check
from gates.scan.loading import load_folder, load_rules
from gates.scan.program.project import module_of, project_of

BAD = "import torch\ntorch.cuda.amp.GradScaler()\n"


def checked(root: Path) -> Checked:
    return check([load_rules()["no-cuda-amp"]], sorted(root.rglob("*.py")), root)


@pytest.mark.parametrize(
    "raw",
    [
        b"torch.GradScaler(:\n",
        b"# torch GradScaler \xff\n",
        b"torch.GradScaler = 1\0\n",
        "GradScaler()\n".encode("utf-16"),
        b"x = 1  # GradScaler\n" * 200_000,
        b"torch.GradScaler" + b"(" * 5000 + b")" * 5000,
        b"torch.GradScaler = " + b"+".join([b"1"] * 20_000),
    ],
)
def test_file_that_cannot_be_read_is_named_and_never_clean(tmp_path: Path, raw: bytes) -> None:
    written(tmp_path, {"a.py": raw, "b.py": BAD})
    found = checked(tmp_path)
    assert [site.path for site in found.sites["no-cuda-amp"] if not site.ok] == ["b.py"]
    assert found.problems or [text.partition(":")[0] for text in found.unparsed] == ["a.py"]


def test_file_that_did_not_change_is_parsed_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "module_of", noted := Mock(wraps=module_of))
    files = {"compat.py": "from torch.cuda import amp as a\n", "use.py": "from compat import a\na.x\n"}
    root = written(tmp_path, files)
    written(root, {"use.py": "from compat import a\na.GradScaler()\n"})
    first, again = checked(root), checked(root)
    assert ([call.args[0] for call in noted.mock_calls], again.sites) == (["compat.py", "use.py"], first.sites)
    assert [site.path for site in first.sites["no-cuda-amp"]] == ["use.py"]
    written(root, {"compat.py": "from other import amp as a  # torch\n"})
    assert checked(root).sites["no-cuda-amp"] == []  # what was kept of use.py does not speak of the old compat.py
    assert {call.args[0] for call in noted.mock_calls[2:]} <= {"compat.py"}


BROKEN = [
    ("pattern: 'f('", "8:10", "not a pattern of Python"),
    ("patern: f()", "8:1", "did you mean 'pattern'?"),
    ("require: {pattern: g(), when: f()}", "8:1", "'require' is gone: write 'inside: {pattern: module, not_has"),
    ("pattern: f($X)\nwhere: {$X: {equals: a}}", "9:14", "'equals' is gone: write 'regex: ^...$'"),
    ("pattern: f()\nevents: amp", "1:1", "exactly one of"),
    ("events: amp\nnever: clip\nunless: step", "10:1", "unknown key 'unless'"),
    ("events: amp\nnever: {order: clip, agian: true}", "9:22", "did you mean 'again'?"),
    ("events: amp\nnever: clip clap", "9:8", "no event 'clap'; did you mean 'clip'?"),
    ("events: amp\nnever: clip*", "9:8", "matches where there is no event"),
    ("events: amp\nnever: {order: clip, of: $Q}", "9:8", "no event binds '$Q'"),
    ("events: amqp\nnever: clip", "8:9", "no vocabulary of events 'amqp'"),
    ("events: amp\nnever: clip\nneeds: [clop]", "10:9", "no event 'clop'"),
    ("pattern: f($X)\nwhere: {$X: {regex: '('}}", "9:21", "not a regular expression"),
]


@pytest.mark.parametrize(("body", "place", "message"), BROKEN)
def test_broken_rule_is_refused_with_its_place(tmp_path: Path, body: str, place: str, message: str) -> None:
    (tmp_path / "r.yaml").write_text(f"id: mine\n{WORDS}{body}\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_folder(tmp_path, tmp_path)
    assert f"r.yaml:{place}: " in str(caught.value)
    assert message in str(caught.value)


def test_trees_of_a_program_that_was_walked_are_let_go() -> None:
    gc.disable()
    try:
        project = project_of({"m.py": b"import torch\n@torch.autocast('cuda')\ndef f(loss):\n    loss.backward()\n"})
        module = weakref.ref(project.modules["m.py"])
        for rule in load_rules().values():
            Scanner(project).sites(rule)
        project.close()
        assert module() is None
    finally:
        gc.enable()
