"""Axis identity by data flow: iteration variables are the same axis when they index the same data, never because they are equally long."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ..expr import Expr
from .blocks import Iter


class Axes:
    """Union-find over iteration variables and (input, dimension) pairs; two variables of one block never become one axis."""

    def __init__(self, blocks: Iterable[tuple[str, tuple[Iter, ...]]]) -> None:
        self.parent: dict[Hashable, Hashable] = {}
        self.members: dict[Hashable, list[Hashable]] = {}
        self.home: dict[str, str] = {}
        self.iters: dict[str, Iter] = {}
        for block, iters in blocks:
            for i in iters:
                self.home[i.name], self.iters[i.name] = block, i

    def find(self, node: Hashable) -> Hashable:
        """The representative of a node's axis."""
        self.parent.setdefault(node, node)
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node

    def same(self, a: Hashable, b: Hashable) -> bool:
        return self.find(a) == self.find(b)

    def variables(self, node: Hashable) -> list[Iter]:
        """Iteration variables on a node's axis."""
        root = self.find(node)
        return [self.iters[str(n)] for n in self.members.get(root, [root]) if n in self.iters]

    def conflict(self, a: Hashable, b: Hashable) -> str | None:
        """Why two nodes cannot be one axis, or None."""
        if self.same(a, b):
            return None
        left, right = self.variables(a), self.variables(b)
        for i in left:
            for j in right:
                if self.home[i.name] == self.home[j.name]:
                    return f"axes {i.label} and {j.label} of block {self.home[i.name]!r} would be one axis"
                if i.extent != j.extent:
                    return f"axes {i.label} ({i.extent}) and {j.label} ({j.extent}) are different parts of one axis"
        return None

    def union(self, a: Hashable, b: Hashable) -> str | None:
        """Make two nodes one axis; returns the conflict that forbids it, if any, and then changes nothing."""
        problem = self.conflict(a, b)
        if problem is None and not self.same(a, b):
            x, y = self.find(a), self.find(b)
            self.members[x] = self.members.get(x, [x]) + self.members.pop(y, [y])
            self.parent[y] = x
        return problem


def plain(e: Expr) -> str | None:
    """The variable an index expression is, when it is nothing but one variable."""
    return str(e.args[0]) if e.op == "index" else None


def uses(e: Expr, variables: Iterable[str]) -> bool:
    """Whether an expression mentions one of the variables."""
    wanted = set(variables)
    return any(n.op == "index" and n.args[0] in wanted for n in e.walk())


def loads(e: Expr) -> list[Expr]:
    """The loads in an expression, each once, in order."""
    return list(dict.fromkeys(n for n in e.walk() if n.op == "load"))
