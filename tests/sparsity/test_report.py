from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.masks.plain import examples, matrix
from tvm_stof.errors import MaskError, MissingDependency, StorageError
from tvm_stof.masks import Causal, Document, Function, SlidingWindow, parse
from tvm_stof.sparsity import analyse, draw, draw_png
from tvm_stof.sparsity.drawing import LEGEND

#: density; share of blocks touched and full at 128 x 128, 128 x 64 and 64 x 64; longest block row at 64 x 64: counted element by
#: element at S = 8192 in the project's survey of other kernels
COUNTED = {
    "causal & window(1023)": (0.1172, (0.1318, 0.1025), (0.1318, 0.1025), (0.1245, 0.1099), 17),
    "window(256)": (0.0616, (0.0767, 0.0464), (0.0767, 0.0464), (0.0691, 0.0540), 9),
    "dilated(512, 2)": (0.0607, (0.1357, 0.0), (0.1357, 0.0), (0.1284, 0.0), 17),
    "longformer(256, 64)": (0.0767, (0.1064, 0.0464), (0.0990, 0.0541), (0.0841, 0.0691), 128),
    "causal & strided(128)": (0.0193, (0.5078, 0.0), (0.5078, 0.0), (0.2617, 0.0078), 65),
}


@pytest.mark.parametrize("text", COUNTED)
def test_shares_counted_elsewhere(text: str) -> None:
    density, *shares, longest = COUNTED[text]
    for (block_q, block_k), (touched, full) in zip(((128, 128), (128, 64), (64, 64)), shares):
        report = analyse(parse(text), 8192, 8192, block_q, block_k)
        assert round(report.density, 4) == density
        assert (round(report.full + report.partial, 4), round(report.full, 4)) == (touched, full)
    assert report.longest_row == longest


def test_bigbird_blocks_are_full_at_its_own_block() -> None:
    report = analyse(parse("bigbird(64)"), 8192, 8192, 64, 64)
    assert report.partial == 0
    assert report.efficiency == 1
    # 3 of the window, 2 global and 3 drawn of 128, and two whole rows, less what falls off the ends.
    assert 0.0755 < report.density < 0.0775


@pytest.mark.parametrize("name", examples())
def test_figures_are_those_of_the_matrix(name: str) -> None:
    mask = examples()[name]
    report = analyse(mask, 37, 53, 8, 16, batch=2, heads=2)
    bits = np.stack([matrix(mask, 37, 53, b, h) for b in range(2) for h in range(2)])
    assert report.density == pytest.approx(bits.mean())
    assert report.elements == pytest.approx(bits.sum() / 4)
    assert report.full + report.partial + report.empty == pytest.approx(1)
    touched = np.add.reduceat(np.add.reduceat(bits, range(0, 37, 8), axis=1, dtype=int), range(0, 53, 16), axis=2) > 0
    assert report.longest_row == touched.sum(axis=2).max()
    assert report.mean_row == pytest.approx(touched.sum(axis=2).mean())
    area = np.outer([8, 8, 8, 8, 5], [16, 16, 16, 5])
    assert report.efficiency == pytest.approx(bits.sum() / (touched * area).sum())
    assert report.balance == pytest.approx(report.mean_row / report.longest_row)
    assert json.loads(json.dumps(report.to_data()))["block_q"] == 8


def test_nothing_at_all() -> None:
    report = analyse(~parse("dense"), 37, 53, 8, 16)
    assert (report.density, report.longest_row, report.empty, report.balance, report.efficiency) == (0, 0, 1, 1, 1)


def test_masks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(MaskError, match="longer than the sequence"):
        analyse(Document((100, 100)), 128, 128, 64, 64)


def test_drawing() -> None:
    band = draw(Causal() & SlidingWindow(63), 256, 256, width=8)
    assert band.split("\n") == ["+-......", "-++-....", "..-++-..", "....-++-", LEGEND]
    assert draw(Causal(align="bottom_right"), 1, 64, width=8) == f"@@@@@@@@\n{LEGEND}"
    assert draw(~parse("dense"), 9, 9, width=4) == f"...\n...\n{LEGEND}"


@pytest.mark.parametrize("name", examples())
@pytest.mark.parametrize("width", [1, 8, 53, 200])
def test_drawn_cells_are_right_about_all_and_nothing(name: str, width: int) -> None:
    mask = examples()[name]
    *lines, legend = draw(mask, 37, 53, width=width).split("\n")
    assert legend == LEGEND
    bits = matrix(mask, 37, 53)
    rows, columns = -(-37 // len(lines)), -(-53 // min(width, 53))
    for r, line in enumerate(lines):
        for c, mark in enumerate(line):
            cell = bits[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns]
            assert mark == ("@" if cell.all() else "+" if cell.mean() >= 0.5 else "-" if cell.any() else ".")


def test_drawing_a_large_mask_looks_at_few_elements() -> None:
    seen = []

    def rule(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (q * 3 + kv) % 1000 < 400

    mask = Function.trace(rule)
    call = Function.__call__

    def counted(self: Function, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        seen.append(np.broadcast_shapes(np.shape(q), np.shape(k)))
        return call(self, q, k, b, h)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Function, "__call__", counted)
        draw(mask, 1 << 17, 1 << 17)
    assert sum(int(np.prod(s)) for s in seen) < 10_000_000


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_png(parse("bigbird(16)"), 256, 256, tmp_path / "mask.png", title="bigbird(16)")
    assert (tmp_path / "mask.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(StorageError, match="cannot be written"):
        draw_png(Causal(), 64, 64, tmp_path / "missing" / "mask.png")


def test_png_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    imported = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependency, match=r"pip install 'tvm-stof\[plot\]'"):
        draw_png(Causal(), 64, 64, tmp_path / "mask.png")
