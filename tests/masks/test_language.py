from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_stof import masks
from tvm_stof.errors import MaskError
from tvm_stof.masks import (
    BigBird,
    BlockList,
    Causal,
    Dense,
    Document,
    Global,
    Longformer,
    Mask,
    RandomBlocks,
    SlidingWindow,
    Strided,
    parse,
    text,
)
from tvm_stof.masks.language import names

from .plain import combined, spoken

TEXTS: dict[str, Mask] = {
    "dense": Dense(),
    "causal": Causal(),
    " causal ( ) ": Causal(),
    "causal(align=bottom_right)": Causal(align="bottom_right"),
    'causal(align="bottom_right")': Causal(align="bottom_right"),
    "causal(align=-3)": Causal(align=-3),
    "window(256)": SlidingWindow(256),
    "window(8, 0)": SlidingWindow(8, ahead=0),
    "window(size=8, ahead=none)": SlidingWindow(8),
    "causal & window(256)": Causal() & SlidingWindow(256),
    "global(2)|causal&window(4)": Global(2) | (Causal() & SlidingWindow(4)),
    "(global(2)|causal)&window(4)": (Global(2) | Causal()) & SlidingWindow(4),
    "~causal & ~~dense": ~Causal(),
    "~(causal | global(1))": ~(Causal() | Global(1)),
    "strided(8,\n local=0,)": Strided(8, local=0),
    "longformer(9, 2)": Longformer(9, tokens=2),
    "document([3, 5, 9])": Document((3, 5, 9)),
    "document(3, 5, 9)": Document((3, 5, 9)),
    "document(3, 5, align=bottom_right)": Document((3, 5), align="bottom_right"),
    "blocks(64, [[0], [0, 1], []])": BlockList(64, ((0,), (0, 1), ())),
    "random(64, 3, seed=7)": RandomBlocks(64, 3, 7),
    "bigbird": BigBird(),
    "bigbird(32, random_blocks=5)": BigBird(32, random_blocks=5),
}


@pytest.mark.parametrize("written", TEXTS)
def test_parse(written: str) -> None:
    assert parse(written) == TEXTS[written]


@pytest.mark.parametrize(("mask", "written"), [
    (Causal() & SlidingWindow(256), "causal & window(256)"),
    (Causal(align="bottom_right") | ~Dense(), "causal(align=bottom_right) | ~dense"),
    (~(Causal() & Global(1)), "~(causal & global(1))"),
    ((Causal() | Global(1)) & SlidingWindow(2, ahead=0), "(causal | global(1)) & window(2, ahead=0)"),
    (BlockList(4, ((0,), ())), "blocks(4, [[0], []])"),
    (RandomBlocks(64, percent=10), "random(64, percent=10)"),
    (BigBird(32, random_blocks=1), "bigbird(block=32, random_blocks=1)"),
])  # fmt: skip
def test_text(mask: Mask, written: str) -> None:
    assert text(mask) == written


@given(combined(spoken(40, 50)))
def test_text_is_read_back(mask: Mask) -> None:
    assert parse(text(mask)) == mask


@pytest.mark.parametrize("mask", [masks.Function.trace(lambda b, h, q, kv: q < kv), masks.Array.of([[True]])])
def test_no_text(mask: Mask) -> None:
    with pytest.raises(MaskError, match="cannot be written as text"):
        text(Causal() & mask)


@pytest.mark.parametrize(("written", "column", "says"), [
    ("causl", 0, "unknown mask: got 'causl'; accepted: bigbird, blocks, causal,"),
    ("causal & windw(4)", 9, "unknown mask"),
    ("causal window(4)", 7, "does not belong here"),
    ("causal &", 8, "a mask is expected: got the end of the text"),
    ("", 0, "a mask is expected"),
    ("window(4", 8, r"something is missing: got the end of the text; accepted: '\)'"),
    ("(causal", 7, "something is missing"),
    ("window", 0, r"window needs size: got 'window'; accepted: window\(size, ahead=none, align=top_left\)"),
    ("causal & window(1, 2, 3)", 22, "too many values for window"),
    ("window(4, size=3)", 10, "size is given twice"),
    ("window(4, aheed=3)", 10, "no such parameter"),
    ("window(ahead=3, 4)", 16, "a value without a name"),
    ("causal & window(-4)", 9, "window size must be a whole number: got -4"),
    ("window(4.5)", 8, "unreadable: got '.5"),
    ("window(12345678901)", 7, "unreadable"),
    ("window(4x)", 7, "unreadable"),
    ("causal ; rm", 7, "unreadable"),
    ("window(causal())", 13, "something is missing"),
    ("document([[[[1]]]])", 12, "a value is expected"),
    ("function", 0, "unknown mask"),
    ("~" * 100 + "causal", 65, "nested too deeply"),
])  # fmt: skip
def test_caret(written: str, column: int, says: str) -> None:
    with pytest.raises(MaskError, match=says) as caught:
        parse(written)
    shown, caret = str(caught.value).split("\n")[-2:]
    left = max(0, column - 50)
    assert shown == "  " + written[left : left + 100]
    assert caret.index("^") - 2 == column - left


def test_only_text_is_read() -> None:
    for given_ in (None, 5, "causal|" * 200_000):
        with pytest.raises(MaskError, match="written as text"):
            parse(given_)  # type: ignore[arg-type]


def test_deep_nesting_does_not_break_python() -> None:
    for written in ("(" * 100_000, "~" * 100_000, "document(" + "[" * 100_000):
        with pytest.raises(MaskError):
            parse(written)
    assert parse("|".join(["causal"] * 10_000)) == Causal()


MARKS = ("&", "|", "~", "(", ")", "[", "]", ",", "=", "1", "-3", "64", "align", "'top_left'", "none", " ", "é", "\0", "99999999999")
WORDS = st.sampled_from([*names(), *MARKS])


@settings(max_examples=300)
@given(st.lists(WORDS, max_size=14).map("".join) | st.text(max_size=30))
def test_anything_else_is_a_mask_error(written: str) -> None:
    try:
        mask = parse(written)
    except MaskError as error:
        message = str(error)
    else:
        message = f"\n  {text(mask)}\n^"
        assert parse(text(mask)) == mask
    assert re.search(r"\n  .*\n *\^$", message)
