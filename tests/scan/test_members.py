# ruff: noqa: E501  # each program is one line
"""Members that a class does not have: found where they are missing for sure, never where others may set them."""

import pytest
from scanning import broken

RULE = "hidden-members"

SOUND = {
    "set on the class by a name that is put together": "class A:\n    def __init__(self):\n        self.x = 1\n    def f(self):\n        return self._add(1)\nfor n in ('add', 'sub'):\n    setattr(A, f'_{n}', print)\n",
    "set by a function that looks at its caller": "from kit import store_attr\nclass A:\n    def __init__(self, p):\n        store_attr('p')\n    def f(self):\n        return self.p\n",
    "set by a function that is handed it": "from kit import fill\nclass A:\n    def __init__(self):\n        fill(self)\n    def f(self):\n        return self.p\n",
    "a setter of a property": "class B:\n    pass\nclass A:\n    @property\n    def b(self) -> B:\n        return self._b\n    @b.setter\n    def b(self, b: B):\n        self._b = b\n",
    "a protocol": "from typing import Protocol\nclass A(Protocol):\n    x: int\ndef f(a: A):\n    return a.y\n",
    "a class that extends it has it": "class A:\n    pass\nclass B(A):\n    y = 1\ndef f(a: A):\n    return a.y\n",
    "a method's own answer": "class T:\n    def train(self):\n        return {}\ndef f():\n    t = T()\n    return t.train().items()\n",
    "no instance": "class Names:\n    def first(text):\n        return text.split()[0]\n",
    "another class passes something else on": "class E:\n    pass\nclass A:\n    def __init__(self, e):\n        self.e = e\nclass B(A):\n    def __init__(self, e):\n        super().__init__(e)\n    def f(self):\n        return self.e.more\ndef one():\n    return A(E())\ndef other(made):\n    return B(made())\n",
    "a descriptor": "class Ticks:\n    def __get__(self, owner, kind=None):\n        return []\nclass A:\n    ticks = Ticks()\n    def f(self):\n        self.ticks.append(1)\n",
    "a descriptor that decorates": "class P:\n    def __init__(self, f):\n        self.f = f\n    def __get__(self, owner, kind=None):\n        return self.f(kind)\nclass A:\n    kind = P(lambda cls: cls)\n    @classmethod\n    def f(cls):\n        return cls.kind.f2\n",
    "a call of another's hook": "class T:\n    def __init__(self, hook):\n        self.hook = hook\n    def go(self):\n        self.hook(self)\nclass H:\n    def hook(self, tester):\n        return tester.score\n",
}


@pytest.mark.parametrize("case", SOUND)
def test_member_that_may_be_there_is_not_missed(case: str) -> None:
    assert broken(RULE, SOUND[case]) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("class A:\n    def __init__(self, n):\n        self.n = n\n    def f(self):\n        return self.m\n", 5),
        ("class A:\n    def __init__(self):\n        print(self)\ndef f():\n    return A().size\n", 5),
    ],
)
def test_member_that_nothing_sets_is_found(text: str, line: int) -> None:
    assert broken(RULE, text) == [f"m.py:{line}"]
