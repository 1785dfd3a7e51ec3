"""Strategies of Hypothesis for input that others give: damaged files, odd JSON, odd objects.

`outcome` has what must hold for all of it: an input is used, or refused by one of our errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from bpa_ppl.errors import BpaError, BpaWarning, DataError
from support.damage import KINDS, TOKENS, Edit, edited

PLACES = st.integers(0, 1 << 20)
EDITS = st.lists(
    st.builds(Edit, st.sampled_from(list(KINDS)), PLACES, PLACES, st.sampled_from(TOKENS)),
    min_size=1,
    max_size=4,
)

TEXTS = st.sampled_from(
    [
        *("", " ", "a cat", "\0", "a\0b", "\n", "\r\n", "\u2028", "\x1b[2J", "é", "日本", "a b"),
        *("nan", "inf", "-1", "1e400", "1" * 400, "/", ".", "../..", "%s{0}", "=", "none", "auto"),
        *("a" * 5000, "\ufeff", "\u0301" * 50, "|||", '"', "'", "\\", "id", "text", "lm"),
    ]
)
NUMBERS = st.sampled_from(
    [
        *(0, 1, -1, 2, 3, 1000, 2**31, 2**53 + 1, 2**63, -(2**63), 10**30, 10**400, True, False),
        *(0.0, -0.0, 0.5, -1.5, 1e-320, 1e38, 1e39, 1e308, np.nan, np.inf, -np.inf),
    ]
)
#: What Python's reader of JSON accepts, and a text that is not Unicode.
ODD_JSON: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.just("\ud800") | NUMBERS | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
#: Arrays of any type and shape.
ODD_ARRAYS: st.SearchStrategy[Any] = npst.arrays(
    npst.scalar_dtypes() | st.sampled_from(["O", "U3", "S3", "M8[D]"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements=None,
    fill=st.nothing(),
)
#: Values of any type that Python programs pass around.
ODD_VALUES: st.SearchStrategy[Any] = st.recursive(
    ODD_JSON
    | ODD_ARRAYS
    | st.sampled_from([1 + 2j, b"", b"a\xff", object(), int, Path("x"), range(3), ...]),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=3).map(iter),
    max_leaves=4,
)


@st.composite
def changed(draw: st.DrawFn, value: Any, odd: st.SearchStrategy[Any] = ODD_JSON) -> Any:
    """Plain data with one value, at any depth, replaced, removed, renamed or repeated."""
    if not isinstance(value, dict | list | tuple) or not value or draw(st.integers(0, 4)) == 4:
        return draw(odd)
    what = draw(st.sampled_from(["inside", "inside", "inside", "remove", "add"]))
    if isinstance(value, dict):
        name, result = draw(st.sampled_from(list(value))), dict(value)
        if what == "inside":
            result[name] = draw(changed(value[name], odd))
        elif what == "remove":
            del result[name]
        else:
            result[draw(TEXTS)] = result[name]
        return result
    place, items = draw(st.integers(0, len(value) - 1)), list(value)
    if what == "inside":
        items[place] = draw(changed(items[place], odd))
    elif what == "remove":
        del items[place]
    else:
        items.append(items[place])
    return type(value)(items)


@st.composite
def damaged(draw: st.DrawFn, sample: bytes) -> bytes:
    """Text that is damaged, in another encoding, out of proportion, or something else."""
    kind = draw(st.sampled_from(["edits", "edits", "edits", "encoding", "ends", "long", "other"]))
    if kind == "encoding":
        names = ["utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig"]
        return sample.decode().encode(draw(st.sampled_from(names)), "replace")
    if kind == "ends":
        end = draw(st.sampled_from([b"\r", b"\r\n", b"\n\r", b"\x0b", b"\xed\xa0\x80\n"]))
        return sample.replace(b"\n", end)
    if kind == "long":
        return draw(st.sampled_from([b"a", b"a ", b"\n", b"\xcc\x81", b"\0"])) * 2000
    if kind == "other":
        return draw(st.binary(max_size=200))
    return edited(sample, draw(EDITS))


def outcome(work: Callable[[], Any], path: Path | None = None) -> Any:
    """Return what some work returns, or the text of our own error; any other error is raised.

    Args:
        work: what is done.
        path: the file that the error must name; None if it may be any of our errors.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BpaWarning)
            return work()
    except BpaError as error:
        refusal = error
    assert not {"\n", "\r"} & set(refusal.message), f"an error of several lines: {refusal!r}"
    if path is not None:
        assert isinstance(refusal, DataError), refusal
        assert str(path) in str(refusal), f"an error without the file: {refusal}"
    return str(refusal)
