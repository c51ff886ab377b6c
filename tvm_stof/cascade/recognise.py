"""Find the cascade in a PrimFunc: its reductions, their axis, the contraction before them, the outputs after them. Names play no part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import CascadeRefused, UnsupportedPrimFunc, explain
from ..expr import Expr, index, load, result
from .axes import Axes, loads, plain, uses
from .blocks import Block, Iter, read
from .facts import width
from .inline import Formula, Formulae, bindings, formulae
from .program import Axis, Contraction, Output, Tensor
from .value import Streamed, streamed_value


@dataclass(frozen=True)
class Reduction:
    """One reduction of a cascade as it was written: d = R over the stream of term."""

    name: str
    monoid: str
    term: Expr
    axes: tuple[Axis, ...]
    dtype: str


@dataclass(frozen=True)
class Cascade:
    """Reductions over one shared axis, each free to use the results of earlier ones (redfuser.md 1.2); nothing is decomposed yet."""

    tensors: tuple[Tensor, ...]
    grid: tuple[Axis, ...]
    stream: Axis
    prologue: Contraction | None
    value: Expr
    predicate: Expr | None
    reductions: tuple[Reduction, ...]
    outputs: tuple[Output, ...]
    prologue_dtype: str = "float32"

    def types(self) -> dict[Expr, str]:
        """Types of results, of the prologue and of tensors under ``Expr("load", (name,))``, for ``facts.width``."""
        types = {Expr("load", (t.name,)): t.dtype for t in self.tensors}
        types |= {result(r.name): r.dtype for r in self.reductions}
        types[Expr("prologue")] = self.prologue_dtype
        types[Expr("value")] = f"float{width(self.value, types) or 32}"
        return types


def recognise(func: Any) -> Cascade:
    """Read the cascade of a PrimFunc (or of an IRModule with one function).

    Raises UnsupportedPrimFunc for constructs that are not read and CascadeRefused for reductions that share no pass by their data flow.
    """
    return _Recogniser(formulae(read(func))).cascade()


class _Recogniser:
    def __init__(self, forms: Formulae) -> None:
        self.forms = forms
        self.outputs = forms.outputs()
        self.inner, self.core = self.split()
        blocks = [*(f.block for f in forms.reductions.values()), *(b for b, _ in self.outputs if not b.reduces)]
        self.rows: dict[tuple[Any, int], str] = {}
        self.axes = Axes((b.name + b.buffer, b.iters) for b in blocks)

    def split(self) -> tuple[dict[str, Formula], dict[str, Formula]]:
        """Reductions evaluated anew for each streamed element (contractions), and those that are stages."""
        forms, used, inner = self.forms.reductions, set[str](), set[str]()
        pending = [e for _, value in self.outputs for e in loads(value)]
        while pending:
            name = str(pending.pop().args[0])
            if name in forms and name not in used:
                used.add(name)
                pending += loads(forms[name].term)
        for name in used:
            over = {i.name for i in forms[name].over}
            inner |= {str(e.args[0]) for e in loads(forms[name].term) if e.args[0] in forms and any(uses(a, over) for a in e.args[1:])}
        for name in used:
            f = forms[name]
            reads = {str(e.args[0]) for e in loads(f.term) if e.args[0] in forms}
            if name in inner and reads:
                raise CascadeRefused(
                    f.block.name, self.text(f.term), f"it is needed for each streamed element and itself needs {', '.join(sorted(reads))}"
                )
            over = {i.name for i in f.over}
            for e in loads(f.term):
                if e.args[0] in inner and not any(uses(a, over) for a in e.args[1:]):
                    raise CascadeRefused(
                        f.block.name,
                        self.text(f.term),
                        f"it uses {e.args[0]} as a final result, another reduction uses it for each element",
                    )
        core = {name: f for name, f in forms.items() if name in used - inner}
        if not core:
            raise UnsupportedPrimFunc(explain("the function has no reduction that feeds its outputs"))
        for f in core.values():
            if len(f.over) != 1:
                raise UnsupportedPrimFunc(
                    explain(f"block {f.block.name!r} reduces over several axes at once", got=[i.label for i in f.over], accepted="one")
                )
        return {name: forms[name] for name in forms if name in inner}, core

    def text(self, e: Expr) -> str:
        """An expression with axes called as their author did."""
        return str(e.substitute({index(i.name): index(i.label) for f in self.forms.every() for i in f.block.iters}))

    def expanded(self, e: Expr) -> list[Expr]:
        """Loads of inputs in an expression, looking into contractions."""
        found = []
        for node in loads(e):
            name = str(node.args[0])
            if name in self.inner:
                f = self.inner[name]
                found += loads(f.term.substitute(bindings(f.block, node.args[1:])))
            elif name not in self.core:
                found.append(node)
        return list(dict.fromkeys(found))

    def link_results(self, user: str, term: Expr) -> None:
        """A result read at a plain axis makes that axis the reduction's own."""
        where = self.text(term)
        for e in loads(term):
            f = self.core.get(str(e.args[0]))
            if f is None:
                continue
            for mine, given in zip(f.block.at, e.args[1:]):
                variable = plain(given)
                if plain(mine) is None or (given.op == "const" and self.axes.iters[str(plain(mine))].extent == 1):
                    continue
                if any(n.op == "load" for n in given.walk()):
                    raise CascadeRefused(
                        user, where, f"the result of {f.block.name!r} is read at a place that depends on data, {self.text(e)}"
                    )
                problem = "it is not read at the row it belongs to" if variable is None else self.axes.union(plain(mine), variable)
                if problem:
                    raise CascadeRefused(user, where, f"it reads {self.text(e)}: {problem}")

    def link_stream(self) -> Iter:
        """Reduced axes are one axis when they index the same input dimension."""
        idle = []
        for f in self.core.values():
            over = f.over[0]
            touched = [(e, k) for e in self.expanded(f.term) for k, a in enumerate(e.args[1:]) if plain(a) == over.name]
            for e, k in touched:
                problem = self.axes.union(over.name, ("input", e.args[0], k))
                if problem:
                    raise CascadeRefused(f.block.name, self.text(f.term), problem)
            if not any(uses(e, [over.name]) for e in self.expanded(f.term)):
                idle.append(over)
        first = next((f.over[0] for f in self.core.values() if f.over[0] not in idle), next(iter(self.core.values())).over[0])
        for over in idle:
            self.axes.union(first.name, over.name)
        for f in self.core.values():
            if not self.axes.same(first.name, f.over[0].name):
                other = next(g for g in self.core.values() if g.over[0] == first)
                reason = (
                    f"it reduces over axis {f.over[0].label}, {other.block.name!r} over {first.label}: no data says that these are one axis"
                )
                raise CascadeRefused(f.block.name, self.text(f.term), reason)
        return first

    def link_rows(self) -> None:
        """Rows of different stages that index the same dimension of a streamed input are one axis, unless that contradicts the rest."""
        for f in self.core.values():
            spatial = {i.name for i in f.spatial}
            for e in self.expanded(f.term):
                if uses(e, [f.over[0].name]):
                    for k, a in enumerate(e.args[1:]):
                        if plain(a) in spatial:
                            self.axes.union(self.rows.setdefault((e.args[0], k), str(plain(a))), str(plain(a)))

    def cascade(self) -> Cascade:
        for f in self.core.values():
            self.link_results(f.block.name, f.term)
        for block, value in self.outputs:
            self.link_results(block.name, value)
        stream = self.link_stream()
        self.link_rows()
        for block, value in self.outputs:
            self.link_output(block, value, stream)
        shared = [self.axes.find(i.name) for i in next(iter(self.core.values())).spatial]
        for f in self.core.values():
            mine = {self.axes.find(i.name) for i in f.spatial}
            shared = [c for c in shared if c in mine]
        names = _Names(self.axes)
        grid = tuple(names.axis(c) for c in shared)
        streamed = names.axis(stream.name)
        symbols = {name: f.block.name for name, f in self.core.items()}
        symbols = {name: s if list(symbols.values()).count(s) == 1 else f"{s}_{k}" for k, (name, s) in enumerate(symbols.items())}
        rename = _Rename(self, names, symbols)
        reductions = []
        for name, f in self.core.items():
            axes = tuple(names.axis(i.name) for i in f.spatial if self.axes.find(i.name) not in shared)
            reductions.append(Reduction(symbols[name], str(f.monoid), rename(f.term), axes, self.forms.function.buffers[name].dtype))
        outputs = tuple(self.output(b, v, rename, names, shared, streamed) for b, v in self.outputs)
        whole = frozenset(t.name for t in self.forms.function.tensors if not t.dtype.startswith(("float", "bfloat")))
        parts = streamed_value(tuple((r.monoid, r.term) for r in reductions), tuple(o.value for o in outputs), streamed.name, whole)
        return self.assemble(parts, grid, streamed, rename.prologue, reductions, outputs)

    def assemble(self, parts: Streamed, grid: tuple[Axis, ...], stream: Axis, prologue: Contraction | None, reductions: list[Reduction],
                 outputs: tuple[Output, ...]) -> Cascade:  # fmt: skip
        table = {parts.value: Expr("value")}
        dtype = next((self.forms.function.buffers[name].dtype for name in self.inner), "float32")
        stages = tuple(Reduction(r.name, r.monoid, t, r.axes, r.dtype) for r, t in zip(reductions, parts.terms))
        stored = tuple(Output(o.tensor, o.at, o.value.substitute(table), o.axes, o.streamed) for o in outputs)
        return Cascade(self.forms.function.tensors, grid, stream, prologue, parts.value, parts.predicate, stages, stored, dtype)

    def link_output(self, block: Block, value: Expr, stream: Iter) -> None:
        """An output's axes that index streamed data are the streamed axis and the rows."""
        mine = {i.name for i in block.iters}
        for e in self.expanded(value):
            for k, a in enumerate(e.args[1:]):
                if plain(a) in mine and self.axes.same(("input", e.args[0], k), stream.name):
                    self.axes.union(stream.name, str(plain(a)))
                elif plain(a) in mine and (e.args[0], k) in self.rows:
                    self.axes.union(self.rows[e.args[0], k], str(plain(a)))

    def output(self, block: Block, value: Expr, rename: _Rename, names: _Names, shared: list[Any], stream: Axis) -> Output:
        mine = [self.axes.find(i.name) for i in block.iters if not i.reduce]
        missing = [names.axis(c).name for c in shared if c not in mine]
        if missing:
            raise CascadeRefused(
                block.name, self.text(value), f"the output {block.buffer} has no axis {', '.join(missing)}, along which the reductions run"
            )
        axes = tuple(names.axis(c) for c in mine if c not in shared and names.axis(c) != stream)
        streamed = any(names.axis(c) == stream for c in mine)
        return Output(block.buffer, tuple(rename(a) for a in block.at), rename(value), axes, streamed)


class _Names:
    """Readable, distinct names of axes."""

    def __init__(self, axes: Axes) -> None:
        self.axes, self.known = axes, {}  # type: Axes, dict[Any, Axis]

    def axis(self, node: Any) -> Axis:
        root = self.axes.find(node)
        if root not in self.known:
            first = self.axes.iters[str(node)] if node in self.axes.iters else self.axes.variables(root)[0]
            taken = {a.name for a in self.known.values()}
            name, n = first.label, 1
            while name in taken:
                n += 1
                name = f"{first.label}{n}"
            self.known[root] = Axis(name, first.extent)
        return self.known[root]


class _Rename:
    """From block variables and buffers to axes, results and the prologue."""

    def __init__(self, owner: _Recogniser, names: _Names, symbols: dict[str, str]) -> None:
        self.owner, self.names, self.symbols = owner, names, symbols
        self.prologue: Contraction | None = None
        self.streams = {i.name for f in owner.core.values() for i in f.over}

    def __call__(self, e: Expr) -> Expr:
        if e.op == "index":
            return index(self.names.axis(e.args[0]).name)
        if e.op != "load":
            return e.rebuild(self)
        name = str(e.args[0])
        if name in self.symbols:
            return result(self.symbols[name])
        if name in self.owner.inner:
            return self.contraction(name, e)
        return load(name, *(self(a) for a in e.args[1:]))

    def contraction(self, name: str, e: Expr) -> Expr:
        f = self.owner.inner[name]
        stream = self.names.axis(next(iter(self.streams))).name
        if f.monoid != "sum" or len(f.over) != 1:
            raise CascadeRefused(
                f.block.name, self.owner.text(f.term), "it is needed for each streamed element and is no contraction (one sum of products)"
            )
        term = self(f.term.substitute(bindings(f.block, e.args[1:])))
        left = [x for x in factors(term) if not uses(x, [stream])]
        right = [x for x in factors(term) if uses(x, [stream])]
        if not left or not right:
            raise CascadeRefused(
                f.block.name,
                self.owner.text(f.term),
                "it is needed for each streamed element and is no product of a row's and a streamed factor",
            )
        found = Contraction(self.names.axis(f.over[0].name), product(left), product(right))
        if self.prologue not in (None, found):
            raise CascadeRefused(
                f.block.name, self.owner.text(f.term), "a second contraction is needed for each streamed element; one is supported"
            )
        self.prologue = found
        return Expr("prologue")


def factors(e: Expr) -> list[Expr]:
    """The factors of a product."""
    return [f for a in e.operands() for f in factors(a)] if e.op == "mul" else [e]


def product(of: list[Expr]) -> Expr:
    """Their product, left to right."""
    out = of[0]
    for f in of[1:]:
        out = Expr("mul", (out, f))
    return out
