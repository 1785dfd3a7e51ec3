"""The words in which two texts differ."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

#: The parts of a text, and whether another text lacks each.
Parts: TypeAlias = list[tuple[str, bool]]

# Letters of scripts without blanks between words: Thai, Lao, Tibetan, Burmese, Khmer, Chinese,
# Japanese.
_UNSPACED = "\u0e00-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"


@cache  # it takes a while, and is not needed whenever this module is imported
def token_pattern() -> re.Pattern[str]:
    """Return what matches a word, a punctuation mark, or a character without blanks around it.

    Each includes the marks and blanks after it.

    >>> token_pattern().findall(" a cat's  hat"), token_pattern().findall("สวัสดี")
    ([' ', 'a ', 'cat', "'", 's  ', 'hat'], ['ส', 'วั', 'ส', 'ดี'])
    """
    signs = map(chr, range(0x300, 0xFE30))
    marks = "".join(sign for sign in signs if unicodedata.category(sign)[0] in "MC")
    letter = rf"[^\W{_UNSPACED}]"
    return re.compile(rf"(?:{letter}(?:{letter}|[{marks}])*|.)[{marks}]*\s*", re.DOTALL)


def mark_differences(before: str, after: str) -> tuple[Parts, Parts]:
    """Split two texts into parts, each with whether the other text lacks it.

    Words, punctuation marks, and single characters of scripts without blanks are compared. The time
    grows with the product of the lengths.

    >>> mark_differences("a red cat", "a cat!")
    ([('a ', False), ('red', True), (' cat', False)], [('a cat', False), ('!', True)])
    >>> mark_differences("我爱猫", "我爱狗")[1]
    [('我爱', False), ('狗', True)]
    """
    tokens = [list[str](token_pattern().findall(text)) for text in (before, after)]
    one, other = ([token.rstrip() for token in side] for side in tokens)
    equal = set[int](), set[int]()
    for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        equal[0].update(range(block.a, block.a + block.size))
        equal[1].update(range(block.b, block.b + block.size))
    return _join_tokens(tokens[0], equal[0]), _join_tokens(tokens[1], equal[1])


def _join_tokens(tokens: list[str], equal: set[int]) -> Parts:
    """Join tokens to parts; blanks at the end of a part that differs go to the next part."""
    runs = groupby(((token, k not in equal) for k, token in enumerate(tokens)), itemgetter(1))
    parts = [("".join(token for token, _ in run), differs) for differs, run in runs]
    for k, (text, differs) in enumerate(parts[:-1]):
        if differs:
            kept = text.rstrip()
            parts[k : k + 2] = [(kept, True), (text[len(kept) :] + parts[k + 1][0], False)]
    return [part for part in parts if part[0]]
