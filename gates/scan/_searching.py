"""A program that searches texts for regular expressions, and ends itself where one search takes too long.

It needs nothing but Python, so that it starts at once. Each line that it reads holds the limit in seconds of its
processor time, the expression and the text; each that it writes whether the one is found in the other.
"""

import json
import re
import signal
import sys


def main() -> None:
    """Answer until nothing more is asked."""
    limited = hasattr(signal, "setitimer")  # elsewhere, whoever asks stops waiting
    if limited:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    for line in sys.stdin:
        seconds, expression, text = json.loads(line)
        if limited:
            signal.setitimer(signal.ITIMER_PROF, seconds)
        found = re.search(expression, text) is not None
        if limited:
            signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(f"{int(found)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
