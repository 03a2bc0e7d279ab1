"""Which places of a program may run a function: by its names, by what holds it, and by what is looked up."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gates.scan.program.classes import ClassInfo
from gates.scan.program.dispatching import dispatch_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import below
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import Shape, accepts, shape_of
from gates.scan.ways.holders import Holder
from gates.scan.ways.hooks import hooks_of
from gates.scan.ways.lookups import Spot, around, called_by_text, called_of_lists
from gates.scan.ways.mention import Mention
from gates.scan.ways.mentions import Sense, mentions_of

CALLED = {"__call__": 1, "forward": 1, "__enter__": 1, "__exit__": 1}


class Group(NamedTuple):
    """Places that may run the same functions, and what they are known by; `None` for those of one function alone."""

    key: object
    places: Iterable[Spot]
    is_loose: bool = False  # whether only a name, a text or a list leads from them to a function


class Open(NamedTuple):
    """What the calls of methods of a name on objects of unknown class are known by."""

    name: str
    shape: Shape


class Callers:
    """The places that may run one function."""

    def __init__(self, function: Function, scope: Scope) -> None:
        self._function = function
        self._scope = scope
        self._project = scope.project
        self._mentions = scope.project.once(mentions_of)[0]
        self._seen: set[str] = set()
        self._held: set[tuple[Holder, bool]] = set()

    def __iter__(self) -> Iterator[Group]:
        """Yield them in groups, some more than once."""
        function, owner = self._function, self._scope.owner
        yield from self._under(function.name)
        generic = self._project.once(dispatch_of)[0].generic.get(function)
        if generic is not None:
            yield from Callers(generic[0], self._project.scope_of(*generic))
        if function in self._project.once(hooks_of)[0].functions:
            yield from self._in_lists()
        if owner is None:
            if any(_is_listed(m.node, m.module) for m in self._meaning(function, self._scope)):
                yield from self._in_lists()
            return
        yield Group(None, self._by_text(), is_loose=True)
        if function.name in CALLED:
            yield from self._by_objects(owner)

    def _by_objects(self, owner: ClassInfo) -> Iterator[Group]:
        """Yield what calls the objects of a class, and of those that extend it."""
        own = self._project.classes.get(owner.name)
        for info in (*([own] if own else []), *self._project.extending.get(owner.name, ())):
            yield from self._instances(info, self._naming(info))
            if any(self._is_kept_in_list(mention) for mention in self._naming(info) if mention.is_called):
                yield from self._in_lists()

    def _is_kept_in_list(self, mention: Mention) -> bool:
        """Return whether what a call of a class makes stands in a list, there or under the name that it is kept by."""
        call = mention.module.parents[mention.node]
        assert isinstance(call, ast.Call)
        if _is_listed(call, mention.module):
            return True
        reached = self._mentions.reached_from(call, mention.module, mention.scope)
        return any(
            _is_listed(other.node, other.module) for other, is_loose in reached if not is_loose or _is_own(other)
        )

    def _meaning(self, function: Function, scope: Scope) -> Iterator[Mention]:
        """Yield the mentions that may mean a function."""
        senses = self._mentions.senses(function.name)
        for sense in senses.meaning(function, scope.owner):
            yield from sense.mentions
        yield from senses.open_mentions if scope.owner is not None else ()

    def _naming(self, info: ClassInfo) -> Iterator[Mention]:
        """Yield the mentions that may name a class."""
        for mention in self._mentions.of(info.node.name):
            named = mention.scope.dotted(mention.node)
            known = named in self._project.classes or named in self._project.functions
            if named == info.name or (not known and (mention.plain[0] or isinstance(mention.node, ast.Attribute))):
                yield mention

    def _under(self, name: str) -> Iterator[Group]:
        """Yield what runs the function under a name, and under those that this one is set to."""
        if name in self._seen:
            return
        self._seen.add(name)
        senses, owner = self._mentions.senses(name), self._scope.owner
        if owner is not None:
            yield from self._open(name)
            for attribute in senses.open_attributes:
                yield from self._under(attribute)
        for sense in senses.meaning(self._function, owner):
            yield self._by(sense)
            for alias in sense.holders:
                yield from self._through(alias, is_loose=sense.first.is_guess)
        for other in self._mentions.renamed.get(name, set()) - {name} if owner is None else ():
            yield from self._under(other)
        outer = self._scope.outer
        maker = outer.function if outer is not None and name == self._function.name else None
        if isinstance(maker, ast.FunctionDef | ast.AsyncFunctionDef) and outer is not None and _returns(maker, name):
            yield from self._instances(maker, self._meaning(maker, outer))

    def _through(self, alias: Holder, *, is_loose: bool) -> Iterator[Group]:
        """Yield what runs the function under another name: of an attribute, or of a variable of one scope.

        What an attribute of the same name hands on may be anything, so that ways are loose from there on.
        """
        if isinstance(alias, str):
            yield from self._under(alias)
        is_loose = is_loose or isinstance(alias, str)
        if {(alias, is_loose), (alias, False)} & self._held or (
            self._scope.owner is not None and isinstance(alias, str)
        ):
            return
        self._held.add((alias, is_loose))
        yield Group((alias, is_loose), map(_spot, self._mentions.held_by(alias)), is_loose)
        for other in self._mentions.passed_from(alias):
            yield from self._through(other, is_loose=is_loose)

    def _in_lists(self) -> Iterator[Group]:
        """Yield what calls the variable of a loop, or what stands under a key, as the function can be called."""
        for shape, places in self._project.once(called_of_lists)[0].items():
            if accepts(self._function, shape, bound=self._scope.owner is not None):
                yield Group(("lists", shape), places, is_loose=True)

    def _by_text(self) -> Iterator[Spot]:
        """Yield the calls of methods by texts, `getattr(hook, name)(...)`, which may mean the function."""
        name = self._function.name
        for call, module, prefix, texts in self._project.once(called_by_text):
            if not name.startswith(prefix) or not (name in texts or name[len(prefix) :] in texts):
                continue
            if accepts(self._function, shape_of(call), bound=True):
                yield call, module, around(call, module)

    def _by(self, sense: Sense) -> Group:
        """Return the mentions that mean the function; as a decorator it runs what it decorates only if a context."""
        is_context = any("contextmanager" in tail_of(d) for d in self._function.decorator_list)
        mentions = (mention for mention in sense.mentions if is_context or not mention.decorates)
        return Group((sense, is_context), map(_spot, mentions), sense.first.is_guess)

    def _open(self, name: str) -> Iterator[Group]:
        """Yield the calls that may run any method of a name, together for all methods that can be called so."""
        for shape, mentions in self._mentions.open_calls(name).items():
            if accepts(self._function, shape, bound=True):
                yield Group(Open(name, shape), map(_spot, mentions), is_loose=True)

    def _instances(self, made: object, mentions: Iterable[Mention]) -> Iterator[Group]:
        """Yield the places that call what a class makes, or a function returns."""
        found = list(self._calls_of(mentions))
        for is_loose in (False, True):
            yield Group(("instances", made, is_loose), [spot for spot, loose in found if loose is is_loose], is_loose)

    def _calls_of(self, mentions: Iterable[Mention]) -> Iterator[tuple[Spot, bool]]:
        """Yield what calls an instance of a class, or enters one, and whether only an attribute's name tells that."""
        for mention in mentions:
            parents = mention.module.parents
            call = parents.get(mention.node)
            held = parents.get(call) if isinstance(call, ast.Call) and call.func is mention.node else None
            if isinstance(held, ast.withitem) and call is not None:
                yield (call, mention.module, mention.around), False
            elif isinstance(call, ast.Call) and call.func is mention.node:
                reached = self._mentions.reached_from(call, mention.module, mention.scope)
                yield from ((_spot(other), is_loose) for other, is_loose in reached if other.is_called)


def _spot(mention: Mention) -> Spot:
    return mention.node, mention.module, mention.around


def _is_own(mention: Mention) -> bool:
    """Return whether an attribute is one of the instance of a method."""
    return isinstance(mention.node, ast.Attribute) and tail_of(mention.node.value) == mention.scope.self_name


def _is_listed(node: ast.AST, module: Module) -> bool:
    """Return whether a function, or what a call makes, stands in a list or is added to one."""
    around = module.parents.get(node)
    added = isinstance(around, ast.Call) and tail_of(around.func) in {"append", "add", "register", "add_hook"}
    if added or not isinstance(around, ast.List | ast.Tuple | ast.Dict):
        return added
    outer = module.parents.get(around)  # of `isinstance(x, (A, B))`, `except (A, B)` and `Union[A, B]` none is run
    asked = isinstance(outer, ast.Call) and tail_of(outer.func) in {"isinstance", "issubclass"}
    return not asked and not isinstance(outer, ast.Subscript | ast.ExceptHandler)


def _returns(maker: Function, name: str) -> bool:
    """Return whether a function returns the one inside of it that has a name."""
    values = [node.value for node in below(maker) if isinstance(node, ast.Return) and node.value is not None]
    parts = [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return any(tail_of(part) == name for part in parts)
