"""Calls one training step of the tested project with everything around it recorded.

    GATES_WITNESS=3,4,5 python -m gates_probe.recorder '{"call": "pkg.mod:name", "args": [], ...}'

The numbers are the descriptors of the pipe for the journal, of its secret, and of a file. The journal ends with what
came of the call; an exception is raised on, so that its traceback reaches stderr.
"""

from .calls import Calls, Forwards
from .effects import ByHand, Clearing, Given, Spoiled
from .hidden import Hidden
from .journal import begun, found, returned_by, safely
from .observing import Scene
from .overflow import Overflow
from .reference import Reference
from .steps import Steps
from .trackers import Trackers


def main() -> None:
    """Record the call that was asked for."""
    asked, journal = begun()
    scene = Scene(journal)
    hidden = Hidden(scene)
    Calls(scene), Steps(scene), Forwards(scene)
    trackers = Trackers(scene)
    journal.watched = trackers.look
    scene.observers += [Clearing(scene), ByHand(scene), Given(scene), Spoiled(scene)]
    if asked["overflow"]:
        scene.observers.append(Overflow(scene, **asked["overflow"]))
    else:
        scene.observers.append(Reference(scene))
    try:
        returned = returned_by(lambda: found(asked["call"], journal)(*asked["args"]))
    except BaseException as error:
        hidden.ended_by(error)
        raise
    safely(journal, "what was returned", lambda: trackers.returned(returned), None)
    scene.let_know(lambda each: each.ended())
    journal.tell("end")


if __name__ == "__main__":
    main()
