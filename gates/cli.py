"""The command line: results on stdout, all else on stderr; each command imports what it needs."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

import click
from click.decorators import FC
from click.exceptions import Exit

from gates import __version__
from gates.words import did_you_mean, visible

if TYPE_CHECKING:
    from gates.config import Project

COLOURS = {"PASS": "green", "BLOCK": "red", "FAIL": "red", "INCONCLUSIVE": "yellow", "PARTIAL": "yellow"}
VERDICT = re.compile(r"\b(PASS|BLOCK|FAIL|INCONCLUSIVE|PARTIAL)\b")


SECONDS = click.FloatRange(min=0, min_open=True, max=7 * 24 * 3600.0)
A_PATH, A_FILE = click.Path(path_type=Path), click.Path(path_type=Path, dir_okay=False)


class Among(click.Choice):  # type: ignore[type-arg]  # older versions of click have none
    """Names to choose from; a wrong one is answered by what may have been meant."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name that was chosen."""
        hint = "" if value in self.choices else did_you_mean(value, self.choices)
        return self.fail(f"{value!r}{hint}", param, ctx) if hint else value


def _form(*forms: str) -> Callable[[FC], FC]:
    """Return the option that says how something is written; the first form is the default."""
    return click.option("--format", "form", type=Among(forms), default=forms[0], show_default=True)


timeout_option = click.option("--timeout", type=SECONDS, help="Seconds that each command may take [default: 900].")
python_option = click.option("--python", metavar="PATH", help="What runs the project's code [default: this Python].")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "GATES"})
@click.version_option(__version__, prog_name="gates")
def cli() -> None:
    """Decide whether a change may be merged, on evidence that was seen.

    Exit codes: 0 PASS, 1 BLOCK, 2 wrong usage or task file, 3 INCONCLUSIVE (required evidence is missing),
    4 the tool itself failed, 130 interrupted, 141 nobody read the output to its end.
    """


@cli.command()
@click.argument("task")
@click.option("--gate", "gates", multiple=True, metavar="NAME", help="Run this gate only; may be repeated.")
@click.option("--only", multiple=True, metavar="CRITERION", help="Look at this criterion only; may be repeated.")
@click.option("--out", type=A_PATH, help="Where the reports go [default: reports/TASK; its partial/ for a part].")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("-v", "--verbose", is_flag=True, help="Print each check, too, as it ended.")
@click.option("--format", "formats", multiple=True, metavar="F", help="Write markdown [default] or text, too.")
@click.option("--fail-fast/--keep-going", default=None, help="Stop after a stage that blocks [default], or not.")
@timeout_option
@python_option
@click.option("--repeat", type=click.IntRange(1, 100), default=1, help="Run the tests so often, in random orders.")
@click.option("--evidence", multiple=True, type=A_PATH, help="Take a bundle, or those of a folder; may be repeated.")
@click.option("--fresh", is_flag=True, help="Collect all evidence anew, also where nothing has changed since a run.")
@click.option("--base", metavar="REF", help="What the bar is compared with [default: the base branch of the change].")
@click.option("--goalposts", type=Among(["bar", "all", "list"]), help="What of a lowered bar stops the change.")
@click.option("--policy-from", metavar="REF", help="Take task file, waivers, settings, rules and templates from REF.")
def run(
    timeout: float | None, python: str | None, fail_fast: bool | None, policy_from: str | None, **asked: object
) -> None:
    """Collect evidence for TASK, judge it, and write the reports."""
    from gates.commands.run import Request, perform
    from gates.project.policy import judging

    own = _project()
    with judging(own.root, own.settings, policy_from) as policy:
        asked |= {"formats": asked["formats"] or ("markdown",), "base": asked["base"] or policy_from}
        asked["project"] = replace(own, settings=policy.settings).running(python, timeout)
        asked["keep_going"] = policy.settings.keep_going if fail_fast is None else not fail_fast
        request = Request.model_validate({"policy": policy, **asked})
        text, exit_code = perform(request, say=lambda line: click.echo(line, err=True))
    click.echo(_coloured(text), nl=False, color=False if os.environ.get("NO_COLOR") else None)
    raise Exit(exit_code)


@cli.command(short_help="Propose a task file for this repository.")
@click.argument("task", default="T1")
@click.option("--title", help="The title of the task [default: the first heading of the description].")
@click.option("--criterion", "criteria", multiple=True, metavar="TEXT", help="A criterion, in words; may be repeated.")
@click.option("--from", "described", type=click.File(encoding="utf-8"), help="Criteria: a list in a file, or -.")
@click.option("--base", metavar="REF", help="What the change is compared with [default: its base branch].")
def init(task: str, title: str | None, criteria: tuple[str, ...], described: TextIO | None, base: str | None) -> None:
    """Write tasks/TASK.yaml: criteria, and the code and tests that they may mean, found by names.

    Without criteria there is one for each definition that the change touches, or else one for each file of tests.
    """
    from gates.commands.init import perform

    text = described.read() if described else ""
    _print(perform(_project(), task, title=title, criteria=criteria, described=text, base=base))


@cli.command("list")
def list_tasks() -> None:
    """List the tasks, their criteria, and the last verdict of each."""
    from gates.commands.explain import overview

    lines, broken = overview(_project())
    _print(lines)
    _print((f"error: {problem}" for problem in broken), err=True)
    raise Exit(2 if broken else 0)


@cli.command(short_help="Show which code and tests verify each criterion.")
@click.argument("task", required=False)
@_form("text", "markdown", "json")
@click.option("--out", type=A_FILE, help="Write it to this file [default: stdout].")
def trace(task: str | None, form: str, out: Path | None) -> None:
    """Show the traceability matrix of TASK, or of all tasks, without running anything.

    Each criterion with the lines that implement it and the tests, measures and entry points that stand for it; tests
    and public code without a criterion; references that lead nowhere.

    Exit codes: 0 a matrix without gaps, 1 a reference leads nowhere, 3 something is missing or could not be read.
    """
    from gates.commands.trace import perform

    page, broken, exit_code = perform(_project(), task, form=form, out=out)
    click.echo(page, nl=False)
    _print((f"error: {problem}" for problem in broken), err=True)
    raise Exit(exit_code)


@cli.command(short_help="Break TASK's code on purpose: does the evidence notice?")
@click.argument("task")
@click.option("--only", metavar="CRITERION", help="Prove one criterion only.")
@click.option("--at-least", type=click.FloatRange(0, 1, min_open=True), default=0.8, help="The score that is needed.")
@click.option("--budget", type=SECONDS, default=600, help="For how many seconds mutants are tried.")
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="How many copies to work in.")
@click.option("--out", type=A_PATH, help="Where the proof goes [default: reports/TASK].")
@timeout_option
@python_option
def prove(timeout: float | None, python: str | None, budget: float, **asked: object) -> None:
    """Break the implementation of TASK on purpose, in a copy, and show whether the evidence notices.

    Exit codes: 0 every criterion of level must is proved, 1 one is not, 2 wrong usage or task file, 3 nothing could be
    proved, 130 interrupted.
    """
    from gates.commands.prove import ProveRequest, perform

    asked["project"] = _project().running(python, timeout)
    _end(*perform(ProveRequest.model_validate({**asked, "budget_s": budget}), say=_say))


@cli.command(short_help="Measure TASK here, into a bundle that counts elsewhere.")
@click.argument("task")
@click.option("--on", type=Among(["cpu", "cuda", "rocm", "xpu", "mps"]), help="Measure on this device only.")
@click.option("--only", metavar="CRITERION", help="Take the measurements of one criterion only.")
@click.option("--out", type=A_PATH, help="The file to write, or a folder [default: evidence/TASK].")
@click.option("--by", metavar="NAME", help="Who measured [default: the user and the machine].")
@click.option("--sign-key", type=A_PATH, metavar="KEY", help="Sign the bundle with an SSH key.")
@timeout_option
@python_option
def measure(timeout: float | None, python: str | None, **asked: object) -> None:
    """Take the measurements of TASK here, and write them into a bundle for `gates run --evidence` elsewhere.

    Exit codes: 0 all that was asked for was measured, 3 something was not (what was is in the bundle).
    """
    from gates.commands.measure import MeasureRequest, perform

    asked["project"] = _project().running(python, timeout)
    _end(*perform(MeasureRequest.model_validate(asked), say=_say))


@cli.command(short_help="Apply the code rules to files and folders, without a task.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Apply this rule or tag only; may be repeated.")
@_form("text", "json", "sarif")
@click.option("--sarif", multiple=True, type=A_FILE, help="Show the findings of another linter, too; may be repeated.")
def check(paths: tuple[Path, ...], rules: tuple[str, ...], form: str, sarif: tuple[Path, ...]) -> None:
    """Apply the code rules to files and folders [default: the current one], without a task and without running it.

    Exit codes: 0 no rule of severity critical or high is broken for certain, 1 one is, 3 a file could not be read.
    """
    from gates.commands.check import perform

    _end(*perform(_project(), paths, rules, form=form, sarif=sarif))


@cli.command(short_help="Judge the saved evidence of a run again, without running anything.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
def verify(folder: Path) -> None:
    """Judge the evidence in DIR, a folder of reports, again by the task file here; nothing of the project runs.

    Evidence that is not what the run wrote is refused (exit code 2). Files that changed since make it inconclusive.
    """
    from gates.commands.verify import perform

    text, exit_code = perform(folder, _project())
    _end(_coloured(text), exit_code)


@cli.command(short_help="Explain a rule, a code rule, a task or a criterion.")
@click.argument("subject")
@click.argument("criterion", required=False)
@click.option("--out", type=A_PATH, help="Where the reports are [default: reports/TASK].")
def explain(subject: str, criterion: str | None, out: Path | None) -> None:
    """Explain a rule (PF001), a code rule (amp-step-order), a task (T035), or a criterion of it (T035 AC5)."""
    from gates.commands.explain import explain as explained

    _print(explained(subject, criterion, _project(), out))


@cli.command()
@click.argument("word", required=False, default="")
def rules(word: str) -> None:
    """List the rules of the gates and the code rules, a line each: all, or those with a WORD in their line."""
    from gates.commands.explain import every_rule

    _print(every_rule(_project(), word))


@cli.command(short_help="Check a report that somebody else wrote.")
@click.argument("report", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--task", metavar="TASK", help="Compare its counts with this task's tests, run now.")
@click.option("--out", type=A_FILE, help="Write a Markdown page here, too.")
@timeout_option
@python_option
def audit(report: Path, task: str | None, out: Path | None, timeout: float | None, python: str | None) -> None:
    """Check what a REPORT somebody else wrote claims: counts, sums, quotients, percentages, quoted lines.

    It says how many of its numbers it did not understand, and in which lines they stand.

    Exit codes: 0 nothing is contradicted, 1 something is, 3 nothing could be confirmed.
    """
    from gates.commands.audit import perform

    _end(*perform(report.resolve(), _project().running(python, timeout), task=task, out=out))


@cli.command()
@python_option
def doctor(python: str | None) -> None:
    """Tell what this machine can and cannot verify."""
    from gates.commands.doctor import perform

    _print(perform(_project().running(python, None).python))


@cli.command(short_help="Show the runs of TASK so far, and how its numbers went.")
@click.argument("task")
@click.option("--last", type=click.IntRange(min=1), default=20, help="How many runs are shown [default: 20].")
def history(task: str, last: int) -> None:
    """Show the runs of TASK in this folder so far: verdict, score, commit, time, and how its numbers went."""
    from gates.commands.history import perform

    _print(perform(_project(), task, last))


@cli.command(short_help="Show what changed between two runs.")
@click.argument("before", metavar="[A]", required=False, type=click.Path(path_type=Path, exists=True))
@click.argument("after", metavar="[B]", required=False, type=click.Path(path_type=Path, exists=True))
def diff(before: Path | None, after: Path | None) -> None:
    """Show what changed from the run whose reports are in A to that in B: criteria, findings, numbers.

    With A alone its last two runs are compared, without A and B those of the task that ran last. Exit code 0 whatever
    has changed: it says nothing of good or bad.
    """
    from gates.commands.history import compare, newest

    _print(compare(before or newest(_project().reports), after).splitlines())


@cli.command(short_help="Print the JSON schema of a file that gates reads or writes.")
@click.argument("name", type=Among(["result", "task", "samples", "bundle"]))
def schema(name: str) -> None:
    """Print the JSON schema of a result, a task file, a samples file or a bundle."""
    from gates.commands.explain import schema_of

    click.echo(schema_of(name))


def _project() -> "Project":
    from gates.config import Project, find_root, load

    root = find_root(Path.cwd())
    return Project(root, load(root))


def _say(line: str) -> None:
    _print([line], err=True)


def _end(text: str, exit_code: int) -> NoReturn:
    click.echo(text, nl=False)
    raise Exit(exit_code)


def _coloured(text: str) -> str:
    """Colour the verdicts of a summary; click takes colours out again where no terminal shows them."""
    return VERDICT.sub(lambda found: click.style(found[0], fg=COLOURS[found[0]], bold=True), text)


def _print(lines: Iterable[str], *, err: bool = False) -> None:
    for line in lines:
        click.echo("\n".join(map(visible, line.splitlines())), err=err)
