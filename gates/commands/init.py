"""What `gates init` writes: a first task file, proposed by names; what was not found stays a comment."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from gates import config
from gates.code.syntax import SourceModule, Unparsed, defined, parse, texts
from gates.errors import EvidenceUnavailable, UsageError
from gates.project.files import files_of, is_test_file, module_name
from gates.project.history import TwoStates
from gates.report import QUANTITY
from gates.task import loading
from gates.task.task import TASK_ID

ASIDE = {"tests", "test", "testing", "docs", "doc", "examples", "benchmarks", "scripts", "tasks", "build", "dist"}
TESTS = "tests", "test"  # folders, or modules, which pytest takes where they are named
NO_CODE = {"setup", "conftest", "noxfile", "tasks"}
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
NAMED = re.compile(r"\**(?P<id>[A-Z]{1,4}-?\d+)\**\s*[:.)]\s*\**\s*(?P<text>.+)")
HEADING = re.compile(r"#+\s+(?P<text>.*)")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
ENDING = re.compile(r"(ings?|ed|es|s|e)$")
IDLE = frozenset(re.findall(r"\w+", "the and for with that must should when are not all test its from has"))
CLOSE, MOST_CODE, MOST_TESTS = 0.6, 3, 8  # the first is the share of the best match that the others must reach


class Named(NamedTuple):
    """A definition of the implementation, or a test: how a task names it, its words, and the names that it uses."""

    name: str
    words: frozenset[str]
    uses: frozenset[str] = frozenset()

    @property
    def told(self) -> str:
        """Return the name by which a text may speak of it: that of a method says too little."""
        return self.name.partition(":")[2]


Known = Sequence[Named]


class Proposed(NamedTuple):
    """A criterion with the code and the tests that it may mean."""

    id: str
    text: str
    code: tuple[str, ...]
    tests: tuple[str, ...]


def perform(
    project: config.Project, task: str, *, title: str | None, criteria: Sequence[str], described: str, base: str | None
) -> list[str]:
    """Write the task file and return what to say; raise `UsageError` where it exists or nothing can be proposed."""
    root, path = project.root, project.tasks / f"{task}.yaml"
    shown = path.relative_to(root).as_posix()
    if not TASK_ID.fullmatch(task):
        raise UsageError(f"no task id {task!r}: expected a letter, then letters, digits, '.', '_' or '-'")
    if path.exists():
        raise UsageError(f"{shown} is there already; choose another id, or remove it")
    if not (implementation := _implementation(root)):
        raise UsageError(f"found no Python package or module in {root} to write a task for")
    tests = _tests(root, implementation)
    code = [*{each.name: each for each in _definitions(root, implementation)}.values()]  # the last of several overloads
    names = _changed(root, base, implementation)
    own = {"", *(each.name.partition(":")[0].partition(".")[0] for each in code)}
    changed, known = [each for each in code if each.name in names], [*_test_functions(root, tests, own)]
    proposed = [*_proposed([*criteria, *_items(described)], code, changed, known)]
    headings = filter(None, map(HEADING.match, described.splitlines()))
    title = title or next((each["text"].strip() for each in headings), "") or f"What {task} must do"
    imported = {name.split(".")[0] for _, module in _parsed(root, implementation) for name in module.aliases.values()}
    text = _written(task, title, implementation, tests, ["amp"] if "torch" in imported else [], proposed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    try:
        loading.load(path, root)
    except UsageError:
        path.unlink()
        raise
    return [*_summary(shown, proposed), f"next: gates trace {task}, then gates run {task}"]


def _summary(shown: str, proposed: Sequence[Proposed]) -> Iterator[str]:
    yield f"wrote {shown}: {len(proposed)} criteri{'a' if len(proposed) > 1 else 'on'}, proposed by names; read it"
    for each in proposed:
        shown = "measures or tests" if QUANTITY.search(each.text) else "" if each.tests else "tests"
        lacks = " and ".join(filter(None, ("" if each.code else "code", shown)))
        yield f"  {each.id}  {f'name its {lacks}' if lacks else ', '.join((*each.code, *each.tests))}"


def _proposed(given: Sequence[str], code: Known, changed: Known, tests: Known) -> Iterator[Proposed]:
    """Yield the criteria that were given, or else one for each changed definition, or for each file of tests."""
    if given:
        groups = [(text, *_meant(text, code, changed, tests)) for text in given]
    elif changed:
        groups = [(f"{each.name} does what its tests say", [each], _few(_users([each], tests))) for each in changed]
    else:
        groups = [_of_file(file, code, tests) for file in dict.fromkeys(test.name.partition("::")[0] for test in tests)]
    if not groups:
        raise UsageError("nothing to propose: give criteria with --criterion or --from, or write a test first")
    named = [NAMED.fullmatch(text) for text, *_ in groups]
    free = (f"AC{number}" for number in count(1) if f"AC{number}" not in {found["id"] for found in named if found})
    for found, (text, symbols, verified) in zip(named, groups, strict=True):
        code_ = tuple(each.name for each in symbols[:MOST_CODE])
        tests_ = tuple(dict.fromkeys(each.name for each in verified))[:MOST_TESTS]
        yield Proposed(found["id"] if found else next(free), (found["text"] if found else text).strip(), code_, tests_)


def _of_file(file: str, code: Known, tests: Known) -> tuple[str, list[Named], list[Named]]:
    """Return a criterion for a file of tests: its code is what most of its tests use."""
    own = [test for test in tests if test.name.partition("::")[0] == file]
    top = Counter(symbol for symbol in code for test in own if _is_used(symbol, test)).most_common(MOST_CODE)
    symbols = [symbol for symbol, count in top if count >= CLOSE * top[0][1]]
    return f"What {file} says of the code holds", symbols, [Named(file, frozenset())]


def _meant(text: str, code: Known, changed: Known, tests: Known) -> tuple[list[Named], list[Named]]:
    """Return the code whose names share most words with a criterion, changed if it may be, and tests that use it."""
    near, few = _nearest(text, code), changed or code
    symbols = [each for each in near if each in changed] or near or [*(few if len(few) <= MOST_CODE else ())]
    users = _users(symbols, tests)  # a test that no criterion names may be weakened unjudged
    found = (users if len(users) <= MOST_TESTS else _nearest(text, users)) or users or _nearest(text, tests)
    used = [symbol for symbol in symbols or code if any(_is_used(symbol, test) for test in found)]
    return (used if used and not changed else symbols or used), found


def _nearest(text: str, named: Known) -> list[Named]:
    """Return what shares most words with a text, the best first; a word that few have, or a whole name, weighs more."""
    common, said = Counter(word for each in named for word in each.words), {*re.findall(r"\w+", text)}
    score = {e: sum(1 / common[word] for word in e.words & _words(text)) + 2 * (e.told in said) for e in named}
    best = max(score.values(), default=0)
    return sorted((e for e in named if score[e] > 0 and score[e] >= CLOSE * best), key=lambda e: (-score[e], e.name))


def _users(symbols: Known, tests: Known) -> list[Named]:
    owners = {name for symbol in symbols for name in symbol.told.split(".")[:-1]}  # where no test names a member
    return [t for t in tests if any(_is_used(s, t) for s in symbols)] or [t for t in tests if owners & t.uses]


def _few(tests: Known) -> list[Named]:
    """Return some tests, or their files where they are many, that of most of them first."""
    files = Counter(test.name.partition("::")[0] for test in tests).most_common()
    return [*tests] if len(tests) <= MOST_TESTS else [Named(file, frozenset()) for file, _ in files]


def _is_used(symbol: Named, test: Named) -> bool:
    """Return whether a test writes the name of a symbol: for a method, that of its class beside it."""
    first, *members = symbol.told.split(".")
    return first in test.uses and all({name, f".{name}"} & test.uses for name in members)


def _words(text: str) -> frozenset[str]:
    found = (word.lower() for word in WORD.findall(text))
    return frozenset(ENDING.sub("", word) if len(word) > 4 else word for word in found if len(word) > 2) - IDLE


def _items(text: str) -> list[str]:
    """Return the list items of a Markdown text: those below a heading on acceptance criteria, where it has one."""
    lines = text.splitlines()
    headings = [i for i, line in enumerate(lines) if HEADING.match(line)]
    start = next((i for i in headings if re.search(r"accept|criteria", lines[i], re.IGNORECASE)), None)
    end = next((i for i in headings if start is not None and i > start), len(lines))
    return [found["text"].strip() for line in lines[start or 0 : end] if (found := ITEM.match(line))]


def _implementation(root: Path) -> tuple[str, ...]:
    """Return the packages of a project, below `src` where there is one, else its modules."""
    home = root / "src" if (root / "src").is_dir() else root
    own = [path for path in sorted(home.iterdir()) if path.is_dir() and path.name.isidentifier()]
    folders = [p for p in own if not (p.name in ASIDE or (p / "pyvenv.cfg").exists() or _is_of_tests(p))]
    found = [path for path in folders if (path / "__init__.py").is_file()] or [p for p in folders if [*p.glob("*.py")]]
    found = found or [path for path in sorted(home.glob("*.py")) if _is_own(path)]
    return tuple(path.relative_to(root).as_posix() for path in found)


def _is_of_tests(folder: Path) -> bool:
    modules = [path for path in folder.glob("*.py") if path.stem not in {"__init__", "conftest"}]
    return bool(modules) and all(map(is_test_file, modules))


def _is_own(path: Path) -> bool:
    return path.stem not in {*NO_CODE, *TESTS} and not is_test_file(path)


def _tests(root: Path, implementation: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders or files of a project's tests."""
    table = config.tool_tables(root / "pyproject.toml") if (root / "pyproject.toml").is_file() else {}
    options = table.get("pytest", {}).get("ini_options", {}) if isinstance(table.get("pytest"), dict) else {}
    asked = options.get("testpaths", [])
    beside = [*sorted(root.iterdir()), *sorted((root / "src").glob("*.py"))]
    inside = (path.parent.relative_to(root) for path in files_of(implementation, root) if is_test_file(path))
    return tuple(
        [path for path in (asked.split() if isinstance(asked, str) else asked) if (root / path).exists()]
        or [name for name in TESTS if (root / name).is_dir()]
        or [path.name for path in beside if _is_of_tests(path)]
        or [path.relative_to(root).as_posix() for path in beside if is_test_file(path) or path.stem in TESTS]
        or dict.fromkeys(path.as_posix() for path in inside)
    )


def _definitions(root: Path, paths: tuple[str, ...]) -> Iterator[Named]:
    """Yield the public functions, classes and methods of some files, tests left out; their docstrings have words."""
    for path, module in _parsed(root, paths):
        if _is_own(path) and not ASIDE.intersection(path.relative_to(root).parts[:-1]):
            for name, node in defined(module.tree):
                if not any(part.startswith("_") for part in name.split(".")):
                    first = (ast.get_docstring(node) or "").partition("\n")[0]
                    yield Named(f"{module_name(path)}:{name}", _words(f"{name} {first}"))


def _test_functions(root: Path, paths: tuple[str, ...], own_tops: set[str]) -> Iterator[Named]:
    """Yield the test functions of some files, with the names that they and their class use; of a mixin its file."""
    parsed = [*_parsed(root, paths)]
    usual = {path.parent for path, _ in parsed if is_test_file(path)}
    for path, module in parsed:
        if is_test_file(path) or path.parent not in usual:  # `python_files` may name others
            shown = path.relative_to(root).as_posix()
            held = [node for node in module.tree.body if isinstance(node, ast.ClassDef)]
            members = {node.name: node.body for node in held if node.name.startswith("Test") or node.bases}
            taken = {"", *(node.name for node in held if node.name.startswith("Test"))}
            for each in held:
                ends = (ast.unparse(base) for base in each.bases)
                taken |= {each.name for base in ends if base in taken or base.endswith("TestCase")}
            for name, node in defined(module.tree):
                owner, _, own = name.rpartition(".")
                if own.startswith("test") and not isinstance(node, ast.ClassDef) and owner in {"", *members}:
                    tops = [one for one in members.get(owner, ()) if not getattr(one, "name", "").startswith("test")]
                    used = {used for one in (node, *tops) for used in _names(one, module, own_tops)}
                    test = "::".join([shown, *name.split(".")])
                    yield Named(test if owner in taken else shown, _words(test), frozenset(used))


def _names(node: ast.AST, module: SourceModule, own_tops: set[str]) -> frozenset[str]:
    """Return the names that are used of own packages, as they are defined, and after a dot the members of objects."""
    aliases = module.aliases
    foreign = {name.partition(".")[0] for name in aliases.values()} - own_tops
    names = [e for e in ast.walk(node) if isinstance(e, ast.Name | ast.Attribute)]
    every = [(e, top) for e in names if (top := (module.dotted(e) or "?").partition(".")[0]) not in foreign]
    bare = {e.id for e, _ in every if isinstance(e, ast.Name) and (e.id in aliases or "*" in aliases)}
    members = {e.attr if top in own_tops else f".{e.attr}" for e, top in every if isinstance(e, ast.Attribute)}
    return frozenset({aliases.get(name, name).rpartition(".")[2] for name in bare} | members)


def _parsed(root: Path, paths: tuple[str, ...]) -> Iterator[tuple[Path, SourceModule]]:
    for path in [path for path in files_of(paths, root) if path.suffix == ".py"]:
        with suppress(Unparsed):  # what cannot be parsed proposes nothing
            yield path, parse(path.read_bytes(), path.name, "")


def _changed(root: Path, asked: str | None, implementation: tuple[str, ...]) -> set[str]:
    """Return the definitions whose text differs from that at the base; nothing where there is no base."""
    try:
        states = TwoStates.since_base(root, asked)
    except EvidenceUnavailable as error:
        if asked:
            raise UsageError(str(error)) from error
        return set()
    old, new = states.changed(implementation, ".py")
    both = ((module_name(root / path), texts(old.get(path, b"")), texts(new[path])) for path in new)
    names = {f"{at}:{name}" for at, before, now in both for name, text in now.items() if before.get(name) != text}
    deepest = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    return {re.sub(r"(:.+?)\._.*", r"\1", name) for name in deepest}  # of a private member the public owner


def _written(
    task: str, title: str, code: Sequence[str], tests: Sequence[str], rules: Sequence[str], proposed: Iterable[Proposed]
) -> str:
    lines = [
        f"id: {task}",
        f"title: {_quoted(title)}",
        f"implementation: {json.dumps(code)}  # the files that the criteria speak of",
        f"tests: {json.dumps(tests)}  # what the execution gate runs",
        *([f"rules: {json.dumps(rules)}  # code rules of mixed precision: hints that block nothing"] if rules else []),
        "criteria:",
    ]
    for each in proposed:
        lines += [f"  - id: {each.id}", f"    text: {_quoted(each.text)}", "    level: must  # or should, or advisory"]
        symbols = ", ".join(f"{{symbol: {json.dumps(name)}}}" for name in each.code)
        lines.append(f"    code: [{symbols}]" if symbols else '    # code: [{symbol: "package.module:name"}]')
        if measured := QUANTITY.search(each.text):
            hint = "See `measures` in docs/measuring.md. Or name tests that show it:"
            lines.append(f"    # What measures {measured[0]!r}? {hint}")
        tests = f"tests: {json.dumps(each.tests or ['tests/test_of_it.py'])}"
        lines.append(f"    {'' if each.tests and not measured else '# '}{tests}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
