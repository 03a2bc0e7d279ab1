"""Try the code rules on planted defects and on sound code: `python -m benchmarks.planted` prints a table by rule.

Ends with 1 where a sound project has a finding.
"""

import sys
from collections import Counter

from benchmarks.planting import SETS, Case, planted, sound
from gates.scan.checking import Scanner
from gates.scan.loading import load_rules
from gates.scan.program.project import project_of

RULES = load_rules()


def places(case: Case) -> list[tuple[str, int]]:
    """Return where any rule finds something in a project."""
    scanner = Scanner(project_of({path: text.encode() for path, text in case.files.items()}))
    sites = [site for rule in RULES.values() for site in scanner.sites(rule)]
    return [(site.path, site.line) for site in sites if not site.ok and not site.undecided]


def main() -> int:
    """Print how many defects of each rule are found near their line, and the sound projects with a finding."""
    total, found = Counter[str](), Counter[str]()
    for case in (case for kind in SETS for case in planted(kind)):
        total[case.rules[0]] += 1
        found[case.rules[0]] += any(place.near(*seen) for place in case.places for seen in places(case))
    print("| rule | planted | found |\n|---|---|---|")
    for rule, count in sorted(total.items()):
        print(f"| `{rule}` | {count} | {found[rule]} |")
    offended = [case.id for kind in SETS for case in sound(kind) if places(case)]
    print(f"\n{found.total()} of {total.total()} found; sound projects with a finding: {len(offended)} {offended}")
    return int(bool(offended))


if __name__ == "__main__":
    sys.exit(main())
