"""The parts of two texts that differ."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpa_ppl.text.differences import mark_differences


@settings(max_examples=100, deadline=None)
@given(*[st.text(st.sampled_from("ab ,.'\n我爱หวัا\u0301"), max_size=12)] * 2)
def test_the_parts_are_the_texts(before: str, after: str) -> None:
    sides = mark_differences(before, after)
    assert tuple("".join(text for text, _ in side) for side in sides) == (before, after)
    same = ["".join(text for text, differs in side if not differs).split() for side in sides]
    assert "".join(same[0]) == "".join(same[1])
    for side in sides:
        assert all(one[1] != other[1] for one, other in pairwise(side))
        assert not any(differs and text != text.rstrip() for text, differs in side[:-1])


@pytest.mark.parametrize(
    ("texts", "marked"),
    [
        (("the القطة السوداء", "the القطة البيضاء"), (["السوداء"], ["البيضاء"])),
        (("वह किताब पढ़ता है", "वह किताबें पढ़ता है"), (["किताब"], ["किताबें"])),  # marks are no boundaries
        (("他喜欢猫。", "她喜欢小猫。"), (["他"], ["她", "小"])),
        (("猫がすき です", "犬がすき です"), (["猫"], ["犬"])),
        (("ﾈｺがすき", "ﾈﾊがすき"), (["ｺ"], ["ﾊ"])),
        (("고양이가 앉았다", "고양이는 앉았다"), (["고양이가"], ["고양이는"])),
        (("well-known facts", "well known facts"), (["-"], [])),
        (("a<b", "a&b"), (["<"], ["&"])),
        (("ab\nc", "ab c"), ([], [])),
        (("", "a  b"), ([], ["a  b"])),
    ],
)
def test_words_and_characters_that_differ(
    texts: tuple[str, str], marked: tuple[list[str], list[str]]
) -> None:
    for words, parts in zip(marked, mark_differences(*texts), strict=True):
        assert [part for part, differs in parts if differs] == words
