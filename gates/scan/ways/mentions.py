"""Where a program mentions its names, those together that mean the same; made once for all rules of order."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import Shape, shape_of
from gates.scan.ways.holders import Holder, holders_of
from gates.scan.ways.mention import Mention

MAX_HOLDERS, MAX_RETURNS = 200, 20


class Sense:
    """Mentions of one name that mean the same."""

    def __init__(self, mentions: list[Mention]) -> None:
        self.mentions = mentions
        self.first = mentions[0]

    @cached_property
    def holders(self) -> tuple[Holder, ...]:
        """Return what is set to what they name, or is handed it."""
        return tuple(dict.fromkeys(holder for mention in self.mentions for holder in mention.holders))


class Senses:
    """The senses of one name, by what they may mean: of thousands few are asked whether they mean a function."""

    def __init__(self, senses: tuple[Sense, ...]) -> None:
        self.all = senses
        self.loose: list[Sense] = []
        self._open: list[Sense] = []
        self._sure: dict[ast.AST, list[Sense]] = defaultdict(list)
        self._supers: list[Sense] = []
        self._of: dict[ClassInfo, list[Sense]] = defaultdict(list)
        for sense in senses:
            mention = sense.first
            loose, nodes = mention.plain
            if loose:
                self.loose.append(sense)
            for node in nodes if not loose else ():
                self._sure[node].append(sense)
            if mention.is_open:
                self._open.append(sense)
            elif mention.may_be_method and mention.owner is not None:
                self._of[mention.owner].append(sense)
            elif mention.may_be_method and mention.is_super:
                self._supers.append(sense)

    @cached_property
    def open_mentions(self) -> list[Mention]:
        """Return what may mean any method of the name."""
        return [mention for sense in self._open for mention in sense.mentions]

    @cached_property
    def open_attributes(self) -> tuple[str, ...]:
        """Return the attributes that are set to any method of the name."""
        holders = (holder for sense in self._open for holder in sense.holders)
        return tuple(dict.fromkeys(holder for holder in holders if isinstance(holder, str)))

    def meaning(self, function: Function, owner: ClassInfo | None) -> Iterable[Sense]:
        """Return those that may mean a function, that of a class where an owner is named; not what means any method."""
        known = self._sure.get(function, [])
        if owner is None:
            return [*self.loose, *known]
        near = (each for each in self._of.values() if each[0].first.may_be_of(function, owner))
        asked = (sense for senses in (known, self._supers, *near) for sense in senses)
        return dict.fromkeys(sense for sense in asked if not sense.first.is_open and sense.first.means(function, owner))


class Mentions:
    """The mentions of a program by their last names."""

    def __init__(self, project: Project) -> None:
        self.named: dict[str, list[Mention]] = defaultdict(list)
        self.renamed: dict[str, set[str]] = defaultdict(set)
        self._senses: dict[str, Senses] = {}
        self._meaning: dict[str, tuple[Mention, ...]] = {}
        self._passed: dict[Holder, tuple[Holder, ...]] = {}
        self._open: dict[str, dict[Shape, list[Mention]]] = {}
        self._scoped: dict[str, dict[Scope, list[Mention]]] = {}
        self._attributes: dict[str, list[Mention]] = {}
        for module in project.modules.values():
            own: dict[str, list[Mention]] = defaultdict(list)
            for node in (*module.live.get(ast.Name, []), *module.live.get(ast.Attribute, [])):
                if isinstance(node, ast.Name | ast.Attribute):
                    mention = Mention(node, module, project)
                    self.named[tail_of(node)].append(mention)
                    if isinstance(node, ast.Name):
                        own[node.id].append(mention)
            self._follow_imports(module, own)

    def _follow_imports(self, module: Module, own: dict[str, list[Mention]]) -> None:
        """List what is imported under another name by the name that it has where it comes from."""
        for name, bindings in module.bindings.items():
            for binding in bindings:
                if binding.kind == "import":
                    last = binding.dotted.rpartition(".")[2]
                    self.renamed[last].add(name)
                    if last != name:
                        self.named[last] += own.get(name, [])

    def in_scope(self, name: str, scope: Scope) -> list[Mention]:
        """Return the mentions of a variable of a scope."""
        if name not in self._scoped:
            found: dict[Scope, list[Mention]] = defaultdict(list)
            for mention in self.named.get(name, []):
                bound = mention.scope.lookup(name) if isinstance(mention.node, ast.Name) else None
                if bound is not None and mention.node.id == name:  # type: ignore[union-attr]  # it is a name
                    found[bound[0]].append(mention)
            self._scoped[name] = found
        return self._scoped[name].get(scope, [])

    def of(self, name: str) -> list[Mention]:
        """Return the mentions of a name, those under another that an import gives it too."""
        return self.named.get(name, [])

    def held_by(self, holder: Holder) -> list[Mention]:
        """Return the mentions of an attribute, or of a variable in its scope and where that may be imported."""
        if isinstance(holder, str):
            if holder not in self._attributes:
                self._attributes[holder] = [m for m in self.of(holder) if m.may_be_attribute]
            return self._attributes[holder]
        name, scope = holder
        own = self.in_scope(name, scope)
        if scope.function is not None:
            return own
        return [*own, *(mention for sense in self.senses(name).loose for mention in sense.mentions)]

    def passed_from(self, holder: Holder) -> tuple[Holder, ...]:
        """Return what is set to what a variable holds, or is handed it."""
        if holder not in self._passed:
            mentions = self.in_scope(*holder) if not isinstance(holder, str) else self.held_by(holder)
            self._passed[holder] = tuple(dict.fromkeys(other for mention in mentions for other in mention.holders))
        return self._passed[holder]

    def reached_from(self, node: ast.expr, module: Module, scope: Scope) -> Iterator[tuple[Mention, bool]]:
        """Yield the mentions of whatever may hold what an expression makes, handed on and on.

        Each with whether an attribute's name, which objects of other classes may have too, led there.
        """
        seen: set[tuple[Holder, bool]] = set()
        todo = [(holder, isinstance(holder, str)) for holder in holders_of(node, module, scope)]
        while todo and len(seen) < MAX_HOLDERS:
            holder, is_loose = todo.pop()
            if not {(holder, is_loose), (holder, False)} & seen:
                seen.add((holder, is_loose))
                further = (*self.passed_from(holder), *self._given_back(holder))
                todo += [(other, is_loose or isinstance(other, str)) for other in further]
                yield from ((mention, is_loose) for mention in self.held_by(holder))

    def _given_back(self, holder: Holder) -> Iterator[Holder]:
        """Yield what holds what the calls of a function give that returns a variable."""
        for mention in self.in_scope(*holder) if not isinstance(holder, str) else ():
            function, project = mention.around, mention.project
            if not isinstance(mention.module.parents.get(mention.node), ast.Return):
                continue
            for call, module in project.named.get(getattr(function, "name", ""), ())[:MAX_RETURNS]:
                scope = project.scope_at(call, module)
                if project.types.function(call, scope) is function:
                    yield from holders_of(call, module, scope)

    def open_calls(self, name: str) -> dict[Shape, list[Mention]]:
        """Return the calls of methods of a name on objects of unknown class, by how they are called."""
        if name not in self._open:
            found: dict[Shape, list[Mention]] = defaultdict(list)
            for mention in self.of(name):
                call = mention.module.parents.get(mention.node)
                if isinstance(call, ast.Call) and mention.is_called and mention.is_open:
                    found[shape_of(call)].append(mention)
            self._open[name] = dict(found)
        return self._open[name]

    def senses(self, name: str) -> Senses:
        """Return the mentions of a name by what they mean; of thousands most mean the same."""
        if name not in self._senses:
            found: dict[tuple[object, ...], list[Mention]] = defaultdict(list)
            for mention in self.of(name):
                found[(type(mention.node), *mention.sense)].append(mention)
            self._senses[name] = Senses(tuple(map(Sense, found.values())))
        return self._senses[name]

    def meaning(self, tail: str) -> tuple[Mention, ...]:
        """Return where a name of a library's is mentioned, under whatever other name it goes."""
        if tail not in self._meaning:
            self._meaning[tail] = (*self.of(tail), *self._otherwise(tail))
        return self._meaning[tail]

    def _otherwise(self, tail: str) -> Iterator[Mention]:
        names, todo = {tail}, [tail]
        while todo:
            name = todo.pop()
            others = {tail_of(alias) for m in self.of(name) if m.aliases and _names(m, tail) for alias in m.aliases}
            for other in (others | self.renamed.get(name, set())) - names:
                names.add(other)
                todo.append(other)
                yield from (mention for mention in self.of(other) if _names(mention, tail))


def mentions_of(project: Project) -> Iterator[Mentions]:
    """Yield the mentions of a program, for `Project.once`."""
    yield Mentions(project)


def _names(mention: Mention, tail: str) -> bool:
    """Return whether a mention stands for what ends with a name."""
    return (mention.scope.dotted(mention.node) or "").endswith(f".{tail}")
