"""Which file an import means: a library, a package's own module of that name, or a script's neighbour."""

import pytest

from gates.scan.program.project import project_of

USE = "{imported}\ndef f():\n    return {called}\n"


def named(files: dict[str, str], path: str) -> str | None:
    """Return the full name of what the one call in a file names."""
    project = project_of({name: text.encode() for name, text in files.items()})
    module = project.modules[path]
    (call,) = [call for calls in module.calls.values() for call in calls]
    return project.scope_at(call, module).dotted(call.func)


@pytest.mark.parametrize("library", ["torch", "wandb", "deepspeed"])
@pytest.mark.parametrize("place", ["pkg/parts/use.py", "pkg/other.py"])
def test_library_is_not_the_module_of_a_package_that_has_its_name(library: str, place: str) -> None:
    files = {
        "pkg/__init__.py": "", "pkg/parts/__init__.py": "", f"pkg/parts/{library}.py": "def init(): pass\n",
        place: USE.format(imported=f"import {library}", called=f"{library}.init()"),
    }  # fmt: skip
    assert named(files, place) == f"{library}.init"


@pytest.mark.parametrize(
    ("imported", "called", "path", "name"),
    [
        ("import logging", "logging.info()", "pkg/logging.py", "logging.info"),
        ("from datasets import build", "build()", "work/datasets.py", "work.datasets.build"),
        ("from .torch import zeros", "zeros()", "pkg/torch.py", "pkg.torch.zeros"),
    ],
    ids=["library of Python", "beside a script", "relative"],
)
def test_import_means_the_library_or_what_lies_beside(imported: str, called: str, path: str, name: str) -> None:
    use = f"{path.partition('/')[0]}/use.py"
    assert named({"pkg/__init__.py": "", path: "", use: USE.format(imported=imported, called=called)}, use) == name


def test_library_whose_own_sources_are_read_is_found_below_any_folder() -> None:
    files = {
        "src/transformers/__init__.py": "", "src/transformers/trainer.py": "def train(): pass\n",
        "src/transformers/more/use.py": USE.format(imported="from transformers.trainer import train", called="train()"),
    }  # fmt: skip
    assert named(files, "src/transformers/more/use.py") == "src.transformers.trainer.train"
