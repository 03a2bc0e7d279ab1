"""The worker's command: `session` runs pytest once as told in a file, `work` tries faults until none is left."""

import json
import sys
from pathlib import Path


def main() -> int:
    """Do what the command line says; return the exit code."""
    mode, told = sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    if mode == "session":
        from .session import run

        return run(told)
    from .work import work

    return work(told)


if __name__ == "__main__":
    sys.exit(main())
