"""Probe a training step: `python -m amp_audit MODULE:CALLABLE`, whose CALLABLE() returns the step.

CALLABLE builds model, optimizer and data, and returns a callable without arguments that takes one training step. It is
called once to be probed and, for the predictions, again on tensors without content. If it returns an
amp_audit.Loop, an overflow is injected, too.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from amp_audit.report import StepFailed, audit, lines, samples
from amp_core.arguments import WRONG_USAGE, OneLineParser, plain_warnings
from amp_core.samples import refuse_unwritable, write


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if the user's code raised, or 2 for wrong usage."""
    arguments = _parser().parse_args(argv)
    try:
        if arguments.out is not None:
            refuse_unwritable(arguments.out)
        make_step = load(arguments.target)
        with plain_warnings():
            found = audit(make_step, arguments.target)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USAGE
    except StepFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines(found)))
    if arguments.out is not None:
        write(arguments.out, samples(found))
        print(f"wrote {arguments.out}")
    return 0


def load(target: str) -> Callable[[], object]:
    """Return what `MODULE:CALLABLE` names.

    Raises:
        ValueError: there is no such module, or no such callable in it.
        StepFailed: importing the module raised.
    """
    module_name, _, name = target.partition(":")
    if not (module_name and name):
        raise ValueError(f"expected MODULE:CALLABLE, such as 'train:make_step', found {target!r}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"cannot import {module_name!r}: there is no module {error.name!r}") from error
    except Exception as error:  # the user's module may raise anything
        raise StepFailed.of(f"importing {module_name}", error) from error
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"expected a callable named {name!r} in {module_name!r}, found {found!r:.80}")  # noqa: TRY004  all that a user can mend is one
    made: Callable[[], object] = found
    return made


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m amp_audit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="MODULE:CALLABLE", help="what returns the step, such as train:make_step")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write a samples file (JSON) for the gates")
    return parser


if __name__ == "__main__":
    sys.exit(main())
