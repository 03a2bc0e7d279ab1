"""Hold the reports of the main job to what the README says of them: `check_reports.py EXIT_CODE`."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema

REPORTS = Path("reports/T035")


def main(exit_code: int) -> None:
    """Compare result.json with its schema and the exit code, and look at each report."""
    gates = [sys.executable, "-m", "gates"]
    schema = json.loads(subprocess.check_output([*gates, "schema", "result"], encoding="utf-8"))
    result = json.loads((REPORTS / "result.json").read_text(encoding="utf-8"))
    jsonschema.validate(result, schema)
    findings = [*(finding for gate in result["gates"] for finding in gate["findings"]), *result["findings"]]
    failed = [one for one in findings if one["outcome"] == "failed" and one["level"] == "must"]
    wrong = [
        *(
            [f"exit code {exit_code}, result.json {result['verdict']}"]
            if result["verdict"]["exit_code"] != exit_code
            else []
        ),
        *(f"{finding['rule']} failed: {finding['message']}" for finding in failed),
        *(f"{gate['name']} did not run" for gate in result["gates"] if not gate["ran"]),
        *(
            f"{gate['name']}: {gate['planned']} planned, {gate['decided']} decided"
            for gate in result["gates"]
            if not gate["planned"] == gate["decided"] > 0
        ),
        *(
            f"{name}.md is missing or does not begin with its title"
            for name in ("summary", "execution", "business-logic", "performance")
            if not (REPORTS / f"{name}.md").read_text(encoding="utf-8").startswith("# ")
        ),
    ]
    if wrong:
        sys.exit("\n".join(wrong))
    print("the reports are as documented:", result["verdict"]["decision"], "score", result["score"]["total"])


if __name__ == "__main__":
    main(int(sys.argv[1]))
