"""What an import that did not work says: a defect, something that is optional here, or a module that refuses."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

from gates.child.tracebacks import is_ours
from gates.context import Context
from gates.model import Location

# what of the standard library is there on some platforms only
PLATFORM = {"ctypes", "os", "signal", "socket", "select", "asyncio", "multiprocessing", "subprocess", "time", "mmap"}
GONE = {"distutils", "imp", "asyncore", "asynchat", "smtpd", "cgi", "cgitb", "crypt", "pipes", "telnetlib", "lib2to3"}
DEFECTS = {"SyntaxError", "NameError", "ImportError", "AttributeError", "TypeError"}


class Ending(StrEnum):
    """How the import of a module by itself ended."""

    IMPORTED = "imported"
    BROKEN = "broken"
    OPTIONAL = "something optional is missing"
    REFUSED = "refuses to be imported alone"
    UNSEEN = "not seen"


def ended_as(fact: dict[str, Any], *, own: set[str], required: set[str]) -> tuple[Ending, str]:
    """Return how an import ended, and the module that is missing, if one is.

    A defect is a module of the project or of its requirements that is not there, a name that is not defined, a cycle,
    a syntax error. A module that raises an error by its own will, or one that speaks of its surroundings (a variable,
    a file, a setting), refuses.
    """
    if "kinds" not in fact:
        return Ending.UNSEEN, ""
    missing = [str(name) for name in fact.get("missing", ())]
    kinds = {str(kind) for kind in fact.get("kinds", ())}
    for name in missing:
        top = name.split(".")[0]
        if top in own or top in required or top in GONE:
            if not fact.get("refused"):
                return Ending.BROKEN, name
        elif top in sys.stdlib_module_names or "." not in name or not fact.get("refused"):
            return Ending.OPTIONAL, name
    if fact.get("refused") or not kinds & DEFECTS:
        return Ending.REFUSED, ""
    owner = str(fact.get("of") or "").split(".")[0]
    if owner in PLATFORM:
        return Ending.OPTIONAL, str(fact["of"])
    return Ending.BROKEN, ""


def frame_of(fact: dict[str, Any], context: Context) -> Location | None:
    """Return the innermost frame of a failed import that lies in the project."""
    for name, line in reversed([frame for frame in fact.get("frames", ()) if len(frame) == 2]):
        path = Path(str(name))
        if path.is_absolute() and is_ours(path, context) and int(line) > 0:
            return Location(path=context.shown(path), line=int(line))
    return None
