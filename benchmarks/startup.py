"""Time the start of `gates --help` beside `pytest --version`, in turn, and list what it must not load."""

import statistics
import subprocess
import sys
import time

ROUNDS = 15
OURS = [sys.executable, "-m", "gates", "--help"]
PEER = [sys.executable, "-m", "pytest", "--version"]
HEAVY = ("torch", "pydantic", "rich", "jinja2", "psutil")


def main() -> None:
    """Print medians, least and most in seconds, and the median of the pairs' ratios."""
    pairs = []
    for number in range(ROUNDS + 1):
        order = (OURS, PEER) if number % 2 else (PEER, OURS)
        seen = {tuple(command): _seconds(command) for command in order}
        if number:  # the first pair warms the file cache
            pairs.append((seen[tuple(OURS)], seen[tuple(PEER)]))
    for name, values in (("gates --help", [a for a, _ in pairs]), ("pytest --version", [b for _, b in pairs])):
        print(f"{name:<17} median {statistics.median(values):.3f} s  [{min(values):.3f}, {max(values):.3f}]")
    ratios = sorted(a / b for a, b in pairs)
    print(
        f"ratio             median {statistics.median(ratios):.2f}    [{ratios[0]:.2f}, {ratios[-1]:.2f}]  n={ROUNDS}"
    )
    loaded = [name for name in HEAVY if name in _modules()]
    print(f"heavy modules     {', '.join(loaded) or 'none loaded'} (of {', '.join(HEAVY)})")


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def _modules() -> set[str]:
    timed = subprocess.run([sys.executable, "-X", "importtime", *OURS[1:]], check=True, capture_output=True, text=True)
    return {line.rpartition("|")[2].strip().split(".")[0] for line in timed.stderr.splitlines()}


if __name__ == "__main__":
    main()
