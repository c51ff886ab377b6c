"""What the recogniser reads from blocks, whoever wrote them, and what it says of the rest."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import s_tir, te, tirx

from tvm_stof import cascade
from tvm_stof.cascade import interpret
from tvm_stof.cascade.normal import normal_form
from tvm_stof.definitions import definition
from tvm_stof.errors import CascadeRefused, UnsupportedPrimFunc
from tvm_stof.expr import Expr, text
from tvm_stof.problems import Attention, Softmax

from . import named
from .building import COLS, REDUCERS, ROWS, Rows, data


def parse(source: str) -> Any:
    """A PrimFunc from TVMScript text."""
    return tvm.script.from_source("# from tvm.script import tirx as T\n" + source)


def renamed(func: Any) -> Any:
    """The same function with every block, buffer, axis and parameter called something else, in another order of the alphabet."""
    source = func.script(show_meta=False)
    words = re.findall(r"sblock\(\"(\w+)\"\)", source) + [str(p.name) for p in func.params]
    words += re.findall(r"^\s+(\w+) = T\.sblock_alloc_buffer", source, re.M)
    for names in re.findall(r"for ([\w, ]+) in|^\s+([\w, ]+) = T\.axis", source, re.M):
        words += [w for part in names for w in re.split(r",\s*", part) if w]
    known = [w for w in dict.fromkeys(words) if w != "root"]
    table = {w: f"z{len(known) - n}" for n, w in enumerate(known)}
    return parse(re.sub(r"(?<![\w.])\w+(?![\w(])", lambda m: table.get(m.group(), m.group()), source))


@pytest.mark.parametrize("name", [n for n in named.FUSED if n != "floor_of_zero"])
def test_what_tvm_computes_is_what_is_read(name: str) -> None:
    func = named.FUSED[name]()
    arrays = {k: v.astype("float32") for k, v in data(func).items()}
    if "label" in arrays:
        arrays["label"] = np.arange(ROWS, dtype="int32") * 5
    outputs = {t.name: tvm.runtime.tensor(np.full(t.shape, np.nan, t.dtype)) for t in cascade.recognise(func).tensors if t.output}
    tvm.compile(func.with_attr("global_symbol", "main"), target="llvm")(*map(tvm.runtime.tensor, arrays.values()), *outputs.values())
    want = interpret.plain(cascade.recognise(func), arrays)
    for output, got in outputs.items():
        np.testing.assert_allclose(got.numpy(), want[output], rtol=2e-4, atol=1e-4)


PROBLEMS = [Softmax(rows=4, cols=8, dtype="float16"), Attention(heads=4, kv_heads=2, q_len=5, kv_len=7, head_dim=8, return_lse=True)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=["softmax", "attention"])
def test_names_play_no_part(problem: Any) -> None:
    func = definition(problem)["main"]
    other = renamed(func)
    assert "row_max" not in other.script()
    assert normal_form(cascade.fuse(other)) == normal_form(cascade.fuse(func))
    assert cascade.fuse(other) != cascade.fuse(func)


HAND_WRITTEN = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 12), "float16"), B: T.Buffer((4,), "float32")):
    top = T.sblock_alloc_buffer((4,))
    total = T.sblock_alloc_buffer((4,))
    for i in T.serial(4):
        for jo, ji in T.grid(LOOPS):
            with T.sblock("a"):
                T.where(CONDITION)
                vi = T.axis.spatial(4, i)
                vj = T.axis.reduce(12, jo * 4 + ji)
                with T.init():
                    top[vi] = T.float32("-inf")
                top[vi] = T.max(top[vi], T.Cast("float32", A[vi, vj]))
    for i, j in T.grid(4, 12):
        with T.sblock("b"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = T.exp(T.Cast("float32", A[vi, vj]) - top[vi]) + total[vi]
    for i in T.serial(4):
        with T.sblock("c"):
            vi = T.axis.spatial(4, i)
            B[vi] = top[vi] + T.log(total[vi])
"""


@pytest.mark.parametrize(("loops", "condition"), [("3, 4", "True"), ("4, 4", "jo * 4 + ji < 12"), ("1, 12", "True")])
def test_split_loops_are_one_axis(loops: str, condition: str) -> None:
    program = cascade.fuse(parse(HAND_WRITTEN.replace("LOOPS", loops).replace("CONDITION", condition)))
    assert program.stream.extent == 12
    assert text(program.stages[1].term) == "exp((x - a))"


@pytest.mark.parametrize(("loops", "condition"), [("3, 4", "jo * 4 + ji < 9"), ("2, 4", "True"), ("3, 5", "True")])
def test_loops_that_miss_or_repeat_points_are_refused(loops: str, condition: str) -> None:
    with pytest.raises(UnsupportedPrimFunc, match=r"block 'a'.*does not visit each point once"):
        cascade.recognise(parse(HAND_WRITTEN.replace("LOOPS", loops).replace("CONDITION", condition)))


def test_scheduled_loops_are_read() -> None:
    schedule = s_tir.Schedule(definition(Softmax(rows=4, cols=12)))
    block = schedule.get_sblock("row_sum")
    schedule.split(schedule.get_loops(block)[1], [None, 5])
    schedule.parallel(schedule.get_loops(block)[0])
    assert cascade.fuse(schedule.mod) == cascade.program_of(Softmax(rows=4, cols=12))


def test_one_tensor_as_query_key_and_value() -> None:
    """x x^T x with equal extents everywhere: both axes index the same dimension of the same tensor and stay two axes."""
    n = 12
    x = te.placeholder((n, n), "float32", "x")
    k, j1, j2, j3 = (te.reduce_axis((0, n), a) for a in "kjjj")
    score = te.compute((n, n), lambda i, j: te.sum(x[i, k] * x[j, k], axis=k), "score")
    m = te.compute((n,), lambda i: REDUCERS["max"](score[i, j1], axis=j1), "m")
    s = te.compute((n,), lambda i: te.sum(te.exp(score[i, j2] - m[i]), axis=j2), "s")
    o = te.compute((n, n), lambda i, e: te.sum(te.exp(score[i, j3] - m[i]) / s[i] * x[j3, e], axis=j3), "o")
    p = te.compute((n, n), lambda i, j: te.exp(score[i, j] - m[i]) / s[i], "p")
    program = cascade.fuse(te.create_prim_func([x, o, p]))
    assert program.prologue is not None
    assert (text(program.prologue.lhs), text(program.prologue.rhs)) == ("x[i, k]", "x[j, k]")
    assert [x.streamed for x in program.outputs] == [False, True]
    value = np.random.default_rng(0).normal(size=(n, n))
    got = interpret.run(program, {"x": value}, ([np.arange(5)], [np.arange(5, 9), np.arange(9, n)]))
    weight = np.exp(value @ value.T)
    weight /= weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(got["p"], weight, rtol=1e-12)
    np.testing.assert_allclose(got["o"], weight @ value, rtol=1e-12, atol=1e-13)


def test_contraction_of_equal_length_is_no_stage() -> None:
    program = cascade.program_of(Attention(heads=1, q_len=16, head_dim=16))
    assert program.prologue is not None
    assert (program.prologue.over.extent, program.stream.extent) == (16, 16)
    assert program.prologue.over != program.stream
    assert len(program.stages) == 3


def test_division_after_the_product_is_the_same_program() -> None:
    def attention(late: bool) -> Any:
        q, k, v = (te.placeholder((6, 4), "float32", n) for n in "qkv")
        d, j1, j2, j3 = (te.reduce_axis((0, n), a) for n, a in ((4, "d"), (6, "j"), (6, "j"), (6, "j")))
        score = te.compute((6, 6), lambda i, j: te.sum(q[i, d] * k[j, d], axis=d), "score")
        m = te.compute((6,), lambda i: REDUCERS["max"](score[i, j1], axis=j1), "m")
        s = te.compute((6,), lambda i: te.sum(te.exp(score[i, j2] - m[i]), axis=j2), "s")

        def weight(i: Any, j: Any) -> Any:
            w = te.exp(score[i, j] - m[i])
            return w if late else w / s[i]

        o = te.compute((6, 4), lambda i, e: te.sum(weight(i, j3) * v[j3, e], axis=j3), "o")
        return te.create_prim_func([q, k, v, te.compute((6, 4), lambda i, e: o[i, e] / s[i], "out") if late else o])

    early, late = (normal_form(cascade.fuse(attention(x))) for x in (False, True))
    assert early.outputs == late.outputs
    assert [s.term for s in early.stages] == [s.term for s in late.stages]


def _store(statement: str, extra: str = "") -> str:
    return f"""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("odd"):
            vi, vj = T.axis.remap("SS", [i, j])
            {statement}
{extra}"""


UNSUPPORTED = {
    "intrinsic": (_store("B[vi, vj] = T.erf(A[vi, vj])"), r"block 'odd'.*erf"),
    "loop": (_store("for k in range(3):\n                B[vi, vj] = A[vi, vj]"), r"block 'odd'.*For"),
    "branch": (_store("if A[vi, vj] > 0.0:\n                B[vi, vj] = A[vi, vj]"), r"block 'odd'.*IfThenElse"),
    "scatter": (_store("B[vi, vj // 2 * 2] = A[vi, vj]"), r"block 'odd' stores at an index"),
    "diagonal": (_store("B[vi, vi] = A[vi, vj]"), r"block 'odd' stores at an index"),
    "no blocks": ("@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((4,), 'float32')):\n    T.evaluate(0)\n", r"no root block"),
    "elementwise": (_store("B[vi, vj] = A[vi, vj] * T.float32(2)"), r"no reduction"),
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_unsupported_constructs_are_named(what: str) -> None:
    source, message = UNSUPPORTED[what]
    with pytest.raises(UnsupportedPrimFunc, match=message):
        cascade.recognise(parse(source))


def test_data_dependent_loop_is_named() -> None:
    source = """
@T.prim_func(s_tir=True)
def main(n: T.Buffer((1,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for j in range(n[0]):
        with T.sblock("sum"):
            vi = T.axis.spatial(1, 0)
            vj = T.axis.reduce(8, j)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vj]
"""
    with pytest.raises(UnsupportedPrimFunc, match=r"loop 'j' has bounds that are not constant"):
        cascade.recognise(parse(source))


def test_reduction_over_two_axes_at_once_is_named() -> None:
    x = te.placeholder((3, 4, 5), "float32", "x")
    k, l = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 5), "l")
    with pytest.raises(UnsupportedPrimFunc, match=r"block 's' reduces over several axes"):
        cascade.recognise(te.create_prim_func([x, te.compute((3,), lambda i: te.sum(x[i, k, l], axis=[k, l]), "s")]))


def test_init_elsewhere_is_named() -> None:
    source = HAND_WRITTEN.replace("LOOPS", "3, 4").replace("CONDITION", "True")
    with pytest.raises(UnsupportedPrimFunc, match=r"block 'b'.*init of total beside an update"):
        cascade.recognise(parse(source.replace("total[vi] = T.float32(0)", "total[0] = T.float32(0)")))


RECURRENCE = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for j in range(8):
        with T.sblock("ema"):
            vi = T.axis.spatial(1, 0)
            vj = T.axis.reduce(8, j)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = UPDATE
"""


@pytest.mark.parametrize("update", ["B[vi] * T.float32(0.5) + A[vj]", "A[vj] - B[vi]", "B[vi] + B[vi]", "T.sqrt(B[vi] + A[vj])"])
def test_updates_that_are_no_monoid_are_refused(update: str) -> None:
    with pytest.raises(CascadeRefused, match=r"'ema'.*not one associative, commutative step"):
        cascade.recognise(parse(RECURRENCE.replace("UPDATE", update)))


@pytest.mark.parametrize(
    ("update", "monoid", "term"),
    [
        ("T.if_then_else(B[vi] < A[vj], A[vj], B[vi])", "max", "A[vj]"),
        ("T.Select(A[vj] < B[vi], A[vj], B[vi])", "min", "A[vj]"),
        ("A[vj] + (B[vi] + A[vj])", "sum", "(A[vj] + A[vj])"),
        ("B[vi] - A[vj]", "sum", "neg(A[vj])"),
        ("T.if_then_else(vj < 5, B[vi] + A[vj], B[vi])", "sum", "A[vj]"),
        ("A[vj] * B[vi]", "prod", "A[vj]"),
    ],
)
def test_updates_in_disguise(update: str, monoid: str, term: str) -> None:
    starts = {"max": 'T.float32("-inf")', "min": 'T.float32("inf")', "prod": "T.float32(1)", "sum": "T.float32(0)"}
    source = RECURRENCE.replace("UPDATE", update).replace("T.float32(0)\n", starts[monoid] + "\n")
    read = cascade.recognise(parse(source))
    (found,) = read.reductions
    assert (found.monoid, text(found.term.substitute({Expr("value"): read.value}))) == (monoid, term)


def test_second_writer_is_refused() -> None:
    source = _store("B[vi, vj] = A[vi, vj]", "".join(_store("B[vi, vj] = A[vi, vj]").splitlines(keepends=True)[3:]).replace("odd", "again"))
    with pytest.raises(CascadeRefused, match=r"'again'.*second block writes B"):
        cascade.recognise(parse(source))


def test_scan_is_refused() -> None:
    source = _store("B[vi, vj] = T.if_then_else(vj > 0, B[vi, T.max(vj - 1, 0)], T.float32(0)) + A[vi, vj]")
    with pytest.raises(CascadeRefused, match=r"recurrence"):
        cascade.recognise(parse(source))


def test_stages_of_different_lengths_are_refused() -> None:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    axis = te.reduce_axis((0, COLS // 2), "l")
    s = te.compute((ROWS,), lambda i: te.sum(te.exp(r["x"][i, axis] - m[i]), axis=axis), "half")
    with pytest.raises(CascadeRefused, match=r"'half'.*different parts of one axis"):
        cascade.recognise(r.func(s))


def test_te_max_starts_from_the_lowest_number_and_counts_as_neutral() -> None:
    r = Rows("x")
    axis = te.reduce_axis((0, COLS), "l")
    m = te.compute((ROWS,), lambda i: te.max(r["x"][i, axis], axis=axis), "m")
    program = cascade.fuse(r.func(r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] - m[i]))))
    assert program.stages[0].neutral == float("-inf")


def test_condition_in_the_middle_of_two_contractions_is_refused() -> None:
    q, k = (te.placeholder((6, 4), "float32", n) for n in "qk")
    d, e, j = te.reduce_axis((0, 4), "d"), te.reduce_axis((0, 4), "e"), te.reduce_axis((0, 6), "j")
    a = te.compute((6, 6), lambda i, j: te.sum(q[i, d] * k[j, d], axis=d), "a")
    b = te.compute((6, 6), lambda i, j: te.sum(q[i, e] * q[j, e], axis=e), "b")
    with pytest.raises(CascadeRefused, match="second contraction"):
        cascade.recognise(te.create_prim_func([q, k, te.compute((6,), lambda i: te.sum(a[i, j] * b[i, j], axis=j), "s")]))


def test_symbolic_shapes_are_named() -> None:
    n = tirx.Var("n", "int32")
    x = te.placeholder((n,), "float32", "x")
    axis = te.reduce_axis((0, n), "l")
    with pytest.raises(UnsupportedPrimFunc, match="symbolic shape"):
        cascade.recognise(te.create_prim_func([x, te.compute((1,), lambda i: te.sum(x[axis], axis=axis), "s")]))
