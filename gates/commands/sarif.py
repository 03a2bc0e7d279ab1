"""SARIF 2.1.0, out and in: findings of code rules for other tools, and those of other linters beside ours."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gates import __version__
from gates.errors import UsageError
from gates.scan.rule import Rule, Site
from gates.words import printable

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}


def written(found: Iterable[tuple[Rule, Site]]) -> str:
    """Return the findings as one SARIF run; the events of an order are its code flow."""
    pairs = [(rule, site) for rule, site in found if not site.undecided]
    rules = {rule.id: rule for rule, _ in pairs}
    driver = {
        "name": "gates", "version": __version__,
        "rules": [
            {"id": rule.id, "shortDescription": {"text": rule.form.problem}, "help": {"text": rule.form.fix}}
            for rule in rules.values()
        ],
    }  # fmt: skip
    run = {"tool": {"driver": driver}, "results": [_result(rule, site) for rule, site in pairs]}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(rule: Rule, site: Site) -> dict[str, object]:
    flow = [{"location": {"message": {"text": event}, **_location(*_place(event, site))}} for event in site.trace]
    return {
        "ruleId": rule.id, "level": LEVELS[rule.form.severity.value], "message": {"text": site.message},
        "locations": [_location(site.path, site.line, site.last_line)],
        "properties": {"certain": rule.is_certain},
        **({"codeFlows": [{"threadFlows": [{"locations": flow}]}]} if flow else {}),
    }  # fmt: skip


def _place(event: str, site: Site) -> tuple[str, int]:
    """Return where an event stands that is written as `clip train.py:12`, or else the finding's own place."""
    path, _, line = event.partition(" (")[0].rpartition(" ")[2].rpartition(":")
    return (path, int(line)) if path and line.isdigit() else (site.path, site.line)


def _location(path: str, line: int, last: int | None = None) -> dict[str, object]:
    region = {"startLine": line, **({"endLine": last} if last else {})}
    return {"physicalLocation": {"artifactLocation": {"uri": path}, "region": region}}


def read(path: Path, base: Path) -> list[str]:
    """Return the findings of another linter, a line each, paths relative to a folder; raise `UsageError`."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        runs = said["runs"]
        return [_line(run, result, base) for run in runs for result in run.get("results", ())]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(
            f"{path}: expected a SARIF 2.1.0 file with 'runs', found another form ({error!r:.80})"
        ) from error


def _line(run: Mapping[str, Any], result: Mapping[str, Any], base: Path) -> str:
    place = (result.get("locations") or [{}])[0].get("physicalLocation", {})
    name = unquote(urlsplit(str(place.get("artifactLocation", {}).get("uri", "?"))).path)
    shown = Path(name).relative_to(base).as_posix() if Path(name).is_relative_to(base) else name
    line, tool = place.get("region", {}).get("startLine", 1), run["tool"]["driver"]["name"]
    message = " ".join(str(result["message"].get("text", "")).split())
    return printable(
        f"{shown}:{line}: {result.get('level', 'warning')} {result.get('ruleId', '-')} ({tool}): {message}"
    )
