"""A program without the names its author chose: two programs that differ by names alone have one normal form."""

from __future__ import annotations

from dataclasses import replace

from ..expr import Expr
from .program import Axis, Contraction, FusedProgram, Output, Stage


def normal_form(program: FusedProgram) -> FusedProgram:
    """The same program with tensors t0, t1, ..., axes a0, a1, ... and stages d0, d1, ... in their order."""
    own = [a for s in program.stages for a in s.axes] + [a for o in program.outputs for a in o.axes]
    inner = [program.prologue.over] if program.prologue else []
    axes = {a.name: Axis(f"a{n}", a.extent) for n, a in enumerate(dict.fromkeys((*program.grid, program.stream, *inner, *own)))}
    tensors = {t.name: f"t{n}" for n, t in enumerate(program.tensors)}
    stages = {s.name: f"d{n}" for n, s in enumerate(program.stages)}

    def expr(e: Expr) -> Expr:
        if e.op == "index":
            return Expr("index", (axes[e.args[0]].name,))
        if e.op in ("result", "previous"):
            return Expr(e.op, (stages[e.args[0]],))
        if e.op == "load":
            return Expr("load", (tensors[e.args[0]], *(expr(a) for a in e.operands())))
        return e.rebuild(expr)

    def optional(e: Expr | None) -> Expr | None:
        return None if e is None else expr(e)

    def rename(of: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(axes[a.name] for a in of)

    def stage(s: Stage) -> Stage:
        guarded = tuple(stages[g] for g in s.guarded)
        named = replace(s, name=stages[s.name], axes=rename(s.axes), guarded=guarded, term=expr(s.term), ratio=optional(s.ratio))
        return replace(named, weight=optional(s.weight), operand=optional(s.operand))

    def output(o: Output) -> Output:
        return replace(o, tensor=tensors[o.tensor], at=tuple(map(expr, o.at)), value=expr(o.value), axes=rename(o.axes))

    p = program.prologue
    return FusedProgram(
        tuple(replace(t, name=tensors[t.name]) for t in program.tensors),
        rename(program.grid),
        axes[program.stream.name],
        None if p is None else Contraction(axes[p.over.name], expr(p.lhs), expr(p.rhs)),
        expr(program.value),
        optional(program.predicate),
        tuple(map(stage, program.stages)),
        tuple(map(output, program.outputs)),
    )


__all__ = ["normal_form"]
