"""Pages beside what they speak of: commands, settings, links, and the README's example of amp_core."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from gates.cli import cli
from gates.config import Settings

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def block(marker: str) -> str:
    """The code block that follows a marker."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found, marker
    return found[1]


def test_example_of_amp_core_runs_as_it_stands_and_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    code = block("example: amp_core")
    assert len(code.splitlines()) < 20
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert out.startswith("bf16 because ")
    assert "step=49" in out


def test_each_command_is_one_line() -> None:
    for name in ("run", "test"):
        (line,) = block(f"command: {name}").splitlines()
        assert line.startswith("python3 -m venv .venv && ")


def page(name: str) -> str:
    """The text of a page of the documentation."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_commands_of_the_table_are_those_of_the_program() -> None:
    assert set(re.findall(r"^\| `gates (\w+)", page("commands.md"), re.MULTILINE)) == set(cli.commands)


PRINTING = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
PRINTING += sorted((ROOT / "tests/golden").rglob("*.md"))


@pytest.mark.parametrize("file", PRINTING, ids=lambda file: file.name)
def test_program_reads_every_command_that_a_page_prints(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for line in re.findall(r"(?:`|^ {4}|&& )(gates [a-z-]+[^`|&\\\n]*)", text, re.MULTILINE):
        name, *words = shlex.split(line, comments=True)[1:]
        command = cli.commands[name]
        command.make_parser(click.Context(command)).parse_args(words)


def test_settings_of_the_table_are_those_of_the_model_with_their_defaults() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page("settings.md"), re.MULTILINE))
    assert set(Settings.model_fields) == {key for key in rows if key.islower()}
    for key, field in Settings.model_fields.items():
        if field.default:
            assert json.loads(rows[key].strip("`")) == field.default, key


def anchors(text: str) -> set[str]:
    """The anchors that the headings of a page have."""
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_every_link_leads_somewhere(file: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if not path.startswith("http"):
            there = file.parent / path if path else file
            assert there.exists(), target
            assert not anchor or anchor in anchors(there.read_text(encoding="utf-8")), target


def test_the_index_names_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)[)#]", page("README.md")))
    assert linked == {file.name for file in (ROOT / "docs").glob("*.md")} - {"README.md"}
