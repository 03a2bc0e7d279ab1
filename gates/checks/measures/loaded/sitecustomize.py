"""Notes, when a Python process ends, which files it had loaded; stands alone, and gives way to the one it hides."""

# ruff: noqa: PTH100, PTH120, PTH123
import atexit
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def note() -> None:
    """Append the files of all modules, and those mapped into memory, to the file that `GATES_LOADED` names."""
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    files = {os.path.realpath(name) for name in modules if isinstance(name, str)}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            files |= {line[line.index("/") :].rstrip("\n") for line in maps if "/" in line}
    except OSError:
        files |= set()  # only Linux tells
    lines = "".join(f"{name}\n" for name in sorted(files) if "\n" not in name)
    with open(os.environ["GATES_LOADED"], "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(lines)


if "GATES_LOADED" in os.environ:
    atexit.register(note)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
    _own = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")  # the one that this one hides
    except ImportError:
        if _own is not None:
            sys.modules["sitecustomize"] = _own
