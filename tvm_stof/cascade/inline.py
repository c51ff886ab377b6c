"""From blocks to formulae: elementwise blocks are written into their users until only inputs and reductions are loaded."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import CascadeRefused, UnsupportedPrimFunc, explain
from ..expr import Expr, call, const, index, load
from .axes import loads, plain
from .blocks import Block, Function, Iter
from .monoids import MONOIDS, neutral_start, split_update


@dataclass(frozen=True)
class Formula:
    """A reduction (with its monoid) or an elementwise map of the function: buffer[at] = [R over the reduce iters of] term."""

    block: Block
    term: Expr
    monoid: str | None = None

    @property
    def over(self) -> tuple[Iter, ...]:
        """The axes it reduces; axes of length 1 are dropped beside longer ones."""
        reduced = tuple(i for i in self.block.iters if i.reduce)
        return tuple(i for i in reduced if i.extent != 1) or reduced[-1:]

    @property
    def spatial(self) -> tuple[Iter, ...]:
        return tuple(i for i in self.block.iters if not i.reduce)


@dataclass(frozen=True)
class Formulae:
    """Reductions and maps by buffer, in order; ``started``: what reading a reduction means when it does not start neutral."""

    function: Function
    reductions: dict[str, Formula]
    maps: dict[str, Formula]
    started: dict[str, Expr]

    def every(self) -> list[Formula]:
        """Reductions, then maps."""
        return [*self.reductions.values(), *self.maps.values()]

    def outputs(self) -> list[tuple[Block, Expr]]:
        """The block that fills each output, and its value, in parameter order."""
        found = []
        for name in (t.name for t in self.function.tensors if t.output):
            block = (self.maps.get(name) or self.reductions[name]).block
            found.append((block, self.maps[name].term if name in self.maps else self.started.get(name, load(name, *block.at))))
        return found


def formulae(function: Function) -> Formulae:
    """Inline every elementwise block."""
    out = Formulae(function, {}, {}, {})
    later = {b.buffer for b in function.blocks}
    for block in function.blocks:
        _check(block, function, out, later)
        later.discard(block.buffer)
        if block.reduces:
            out.reductions[block.buffer] = _reduction(block, out)
        else:
            out.maps[block.buffer] = Formula(block, inlined(block.value, out))
    return out


def _check(block: Block, function: Function, out: Formulae, later: set[str]) -> None:
    at = [plain(a) for a, n in zip(block.at, function.buffers[block.buffer].shape) if not (a.op == "const" and n == 1)]
    spatial = {i.name for i in block.iters if not i.reduce}
    needed = {i.name for i in block.iters if not i.reduce and i.extent != 1}
    if None in at or len(set(at)) != len(at) or not needed <= set(at) <= spatial:
        raise UnsupportedPrimFunc(
            explain(f"block {block.name!r} stores at an index that is not one axis per dimension", got=_bracket(block.buffer, block.at))
        )
    extents = {i.name: i.extent for i in block.iters}
    whole = [extents[str(plain(a))] if plain(a) else 1 for a in block.at]
    if whole != list(function.buffers[block.buffer].shape):
        raise UnsupportedPrimFunc(
            explain(f"block {block.name!r} fills only a part of {block.buffer}", got=whole, accepted=function.buffers[block.buffer].shape)
        )
    if block.buffer in out.reductions or block.buffer in out.maps:
        raise CascadeRefused(block.name, str(block.value), f"a second block writes {block.buffer}; a state has one writer")
    tensors = {t.name: t for t in function.tensors}
    for e in loads(block.value):
        name = str(e.args[0])
        if name == block.buffer:
            if not block.reduces or e.args[1:] != block.at:
                raise CascadeRefused(
                    block.name, str(block.value), f"it reads {e} of the buffer it writes: a recurrence, whose order matters"
                )
        elif name in later:
            raise CascadeRefused(block.name, str(block.value), f"it reads {name}, which a later block writes")
        elif name not in out.reductions and name not in out.maps and name not in tensors:
            raise UnsupportedPrimFunc(explain(f"block {block.name!r} reads a buffer that nothing writes", got=name))


def _reduction(block: Block, out: Formulae) -> Formula:
    state = load(block.buffer, *block.at)
    found = split_update(block.value, state)
    if found is None:
        accepted = ", ".join(MONOIDS)
        raise CascadeRefused(
            block.name, str(block.value), f"the update is not one associative, commutative step of a known kind ({accepted})"
        )
    monoid, term = found
    if block.init is None:
        raise UnsupportedPrimFunc(
            explain(f"block {block.name!r} reduces without an init", way_out="Give it a T.init() with the neutral element")
        )
    if not neutral_start(monoid, block.init):
        if loads(block.init):
            raise UnsupportedPrimFunc(explain(f"block {block.name!r} starts from data", got=block.init, accepted="a constant"))
        out.started[block.buffer] = call(monoid.op, block.init, state)
    formula = Formula(block, term, monoid.name)
    single = {index(i.name): const(0) for i in block.iters if i.reduce and i not in formula.over}
    return Formula(block, inlined(term, out).substitute(single), monoid.name)


def inlined(e: Expr, out: Formulae) -> Expr:
    """``e`` over inputs and reductions only."""
    if e.op != "load":
        return e.rebuild(lambda a: inlined(a, out))
    name, at = str(e.args[0]), tuple(inlined(a, out) for a in e.args[1:])
    if name in out.maps:
        return out.maps[name].term.substitute(bindings(out.maps[name].block, at))
    if name in out.started:
        return out.started[name].substitute(bindings(out.reductions[name].block, at))
    return load(name, *at)


def bindings(block: Block, at: tuple[Expr, ...]) -> dict[Expr, Expr]:
    """What a block's spatial axes are when its buffer is read at ``at``."""
    table = {index(i.name): const(0) for i in block.iters if not i.reduce}
    table.update({mine: given for mine, given in zip(block.at, at) if mine.op == "index"})
    return table


def _bracket(buffer: str, at: tuple[Expr, ...]) -> str:
    return str(load(buffer, *at))
