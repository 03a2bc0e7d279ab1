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


def test_standard_library_is_not_the_module_beside_it_in_a_package() -> None:
    use = USE.format(imported="import logging", called="logging.info()")
    files = {"pkg/__init__.py": "", "pkg/logging.py": "def info(): pass\n", "pkg/use.py": use}
    assert named(files, "pkg/use.py") == "logging.info"


def test_script_imports_what_lies_beside_it() -> None:
    use = USE.format(imported="from datasets import build", called="build()")
    files = {"work/datasets.py": "def build(): pass\n", "work/train.py": use, "other/x.py": ""}
    assert named(files, "work/train.py") == "work.datasets.build"


def test_library_whose_own_sources_are_read_is_found_below_any_folder() -> None:
    use = USE.format(imported="from transformers.trainer import train", called="train()")
    files = {
        "src/transformers/__init__.py": "", "src/transformers/trainer.py": "def train(): pass\n",
        "src/transformers/more/use.py": use,
    }  # fmt: skip
    assert named(files, "src/transformers/more/use.py") == "src.transformers.trainer.train"


def test_relative_import_is_the_packages_own() -> None:
    use = USE.format(imported="from .torch import zeros", called="zeros()")
    files = {"pkg/__init__.py": "", "pkg/torch.py": "def zeros(): pass\n", "pkg/use.py": use}
    assert named(files, "pkg/use.py") == "pkg.torch.zeros"
