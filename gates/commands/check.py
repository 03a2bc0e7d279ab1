"""What `gates check` does: apply the code rules to files and folders, without a task; SARIF in and out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gates import __version__
from gates.config import Project
from gates.errors import UsageError
from gates.model import GRAVE, SEVERITIES
from gates.project.files import files_of
from gates.scan.checking import Checked, check
from gates.scan.loading import load_rules, named, unknown
from gates.scan.rule import Rule, Site
from gates.words import counted, printable, visible

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}


def sarif_of(found: Iterable[tuple[Rule, Site]]) -> str:
    """Return the findings as one SARIF run; the events of an order are its code flow."""
    pairs = [(rule, site) for rule, site in found if not site.undecided]
    rules = {rule.id: rule for rule, _ in pairs}
    said = ((each.id, {"text": each.form.problem}, {"text": each.form.fix}) for each in rules.values())
    about = [{"id": name, "shortDescription": problem, "help": fix} for name, problem, fix in said]
    driver = {"name": "gates", "version": __version__, "rules": about}
    run = {"tool": {"driver": driver}, "results": [_result(rule, site) for rule, site in pairs]}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(rule: Rule, site: Site) -> dict[str, object]:
    flow = [{"location": {"message": {"text": event}, **_location(*_place(event, site))}} for event in site.trace]
    return {
        "ruleId": rule.id,
        "level": LEVELS[rule.form.severity.value],
        "message": {"text": site.message},
        "locations": [_location(site.path, site.line, site.last_line)],
        "properties": {"certain": rule.is_certain},
        **({"codeFlows": [{"threadFlows": [{"locations": flow}]}]} if flow else {}),
    }


def _place(event: str, site: Site) -> tuple[str, int]:
    """Return where an event stands that is written as `clip train.py:12`, or else the finding's own place."""
    path, _, line = event.partition(" (")[0].rpartition(" ")[2].rpartition(":")
    return (path, int(line)) if path and line.isdigit() else (site.path, site.line)


def _location(path: str, line: int, last: int | None = None) -> dict[str, object]:
    region = {"startLine": line, **({"endLine": last} if last else {})}
    return {"physicalLocation": {"artifactLocation": {"uri": path}, "region": region}}


def read_sarif(path: Path, base: Path) -> list[str]:
    """Return the findings of another linter, a line each, paths relative to a folder; raise `UsageError`."""
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return [_line(run, result, base) for run in runs for result in run.get("results", ())]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(f"{path}: expected a SARIF 2.1.0 file with 'runs', found another ({error!r:.80})") from error


def _line(run: Mapping[str, Any], result: Mapping[str, Any], base: Path) -> str:
    place = (result.get("locations") or [{}])[0].get("physicalLocation", {})
    name = unquote(urlsplit(str(place.get("artifactLocation", {}).get("uri", "?"))).path)
    shown = Path(name).relative_to(base).as_posix() if Path(name).is_relative_to(base) else name
    line, tool = place.get("region", {}).get("startLine", 1), run["tool"]["driver"]["name"]
    said = " ".join(str(result["message"].get("text", "")).split())
    return printable(f"{shown}:{line}: {result.get('level', 'warning')} {result.get('ruleId', '-')} ({tool}): {said}")


SHOWN = 20  # functions that are not decided


def perform(
    project: Project, paths: Sequence[Path], asked: Sequence[str], *, form: str, sarif: Sequence[Path]
) -> tuple[str, int]:
    """Apply rules to paths; return what was found, and 1 for a certain grave finding, 3 for unread files, else 0."""
    rules, base = _asked(asked, load_rules(project.rules, project.root)), Path.cwd()
    places = [path.absolute() for path in paths or (base,)]
    files = [f for p in places for f in ([p] if p.is_file() else files_of((".",), p)) if f == p or f.suffix == ".py"]
    if not files:
        raise UsageError(f"no Python file in {', '.join(map(str, paths)) or base}; name files or folders")
    found = check(rules, dict.fromkeys(files), base, kept=False)
    broken = [(rule, site) for rule in rules for site in found.sites[rule.id] if not site.ok]
    broken.sort(key=lambda pair: (pair[1].path, pair[1].line, SEVERITIES.index(pair[0].form.severity), pair[0].id))
    others = [line for path in sarif for line in read_sarif(path, base)]
    if form == "sarif":
        text = sarif_of(broken)
    elif form == "json":
        records = [_record(rule, site) for rule, site in broken]
        text = json.dumps({"findings": records, "unread": _unread(found), "others": others}, indent=1)
    else:
        text = "\n".join(map(visible, [*others, *_text(broken, found)]))
    certain = any(rule.form.severity in GRAVE and rule.is_certain and not site.undecided for rule, site in broken)
    return text + "\n", 1 if certain else 3 if _unread(found) else 0


def _asked(names: Sequence[str], known: dict[str, Rule]) -> list[Rule]:
    """Return the rules of some ids or tags; raise `UsageError` with a suggestion for one that there is not."""
    chosen: dict[str, Rule] = {}
    for name in names or sorted(known):
        if not (found := named(name, known)):
            raise UsageError(unknown(name, known))
        chosen |= {rule.id: rule for rule in found}
    return list(chosen.values())


def _text(broken: Sequence[tuple[Rule, Site]], found: Checked) -> Iterator[str]:
    decided = [(rule, site) for rule, site in broken if not site.undecided]
    for rule, site in decided:
        way = f" ({' -> '.join(site.trace)})" if site.trace else ""
        sure = "" if rule.is_certain else "likely "
        yield f"{site.path}:{site.line}: {sure}{rule.form.severity.value} {rule.id}: {site.message}{way}"
    left = list(dict.fromkeys(f"{s.path}:{s.line}: not decided: {s.message}" for _, s in broken if s.undecided))
    yield from left[:SHOWN]
    if len(left) > SHOWN:
        yield f"{len(left) - SHOWN} more functions are not decided"
    yield from (f"{problem} (not checked)" for problem in _unread(found))
    rest = f", {len(left):,} of {found.functions:,} functions not decided" if left else ""
    rest += f", {counted(len(set(found.unparsed)), 'file')} not checked" if found.unparsed else ""
    counts = f"{counted(found.files, 'file')}, {counted(len(decided), 'finding')}"
    yield f"{counts}, {sum(rule.form.severity in GRAVE for rule, _ in decided)} of them critical or high{rest}"


def _record(rule: Rule, site: Site) -> dict[str, object]:
    place = {"path": site.path, "line": site.line, "last_line": site.last_line, "message": site.message}
    said = {"rule": rule.id, "severity": rule.form.severity.value, "fix": rule.form.fix}
    certain = rule.is_certain and not site.undecided
    return {**said, **place, "trace": list(site.trace), "undecided": site.undecided, "certain": certain}


def _unread(found: Checked) -> list[str]:
    return [*dict.fromkeys(found.unparsed), *(f"{rule}: {problem}" for rule, problem in found.problems.items())]
