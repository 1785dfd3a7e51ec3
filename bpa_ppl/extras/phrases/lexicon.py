"""Lexicon: word translation probabilities between candidate and source, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from msgspec import Meta

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.streams import origin_name, read_lines, require_parallel
from bpa_ppl.components import Share
from bpa_ppl.errors import DataError, wrong_value
from bpa_ppl.features.source import SELF, TextSource, make_unknown_check
from bpa_ppl.gains.gains import find_distinct
from bpa_ppl.lists.nbest import NBest

if TYPE_CHECKING:
    from bpa_ppl.extras.phrases.ibm1 import IBM1

#: Source and target texts.
Pairs = Sequence[tuple[str, str]]


class Lexicon(TextSource, frozen=True):
    """IBM Model 1 between source and candidate, learned from pairs of sentences.

    The columns are `lexicon.direct`, the natural log of p(candidate | source), and
    `lexicon.inverse`, that of p(source | candidate); see `bpa_ppl.extras.phrases.ibm1`. Words are
    separated by spaces and taken as they are: tokenise and case the pairs like the lists.

    Attributes:
        pairs: the source file and the target file of a translation memory, line by line; or
            `self`: the sources and references of the adaptation sentences. The features of those
            sentences then come from models of the others (cross-fitting); equal pairs
            of source and references are in one fold, and count once.
        iterations: of EM, at most 1000.
        floor: the least probability of a word given a sentence, and that of an unknown word; chosen
            on the adaptation sentences of three domains: 1e-3 is as good, 1e-7 loses 0.4 TER.
        name: the beginning of the names of the columns, so that several can be used together.
        learned_pairs: the pairs that it was fitted to, or carries.

    Raises:
        UsageError: if `pairs` are neither two files nor `self`.
    """

    main: ClassVar[str | None] = "pairs"
    paths: ClassVar[tuple[str, ...]] = ("pairs",)
    learned: ClassVar[tuple[str, ...]] = ("learned_pairs",)
    pairs: tuple[str, str] | str
    iterations: Annotated[int, Meta(ge=1, le=1000)] = 5
    floor: Share = 1e-4
    name: str = "lexicon"
    learned_pairs: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.pairs, str) and self.pairs != SELF:
            rule = f"{self.name} needs two files, as in lexicon=memory.fr,memory.en, or self"
            raise wrong_value(rule, self.pairs, "pairs")
        super().__post_init__()

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"sources", "references"} if self.unlearned else {"sources"})

    def texts_of(self, lists: NBest) -> list[tuple[tuple[str, str], ...]]:
        """Return for each sentence its source with each of its references."""
        sources, references = lists.sources, lists.references
        if sources is None or references is None:
            need = "sources" if sources is None else "references"
            message = f"no {need}, which {self.name}=self needs: add them"
            raise DataError(message, lists.origin, parameter=need, code=f"missing-{need}")
        pairs = zip(sources, references, strict=True)
        return [tuple((source, text) for text in texts) for source, texts in pairs]

    def read(self) -> tuple[tuple[str, str], ...]:
        sides = [read_lines(path) for path in self.pairs]
        names = [origin_name(path) for path in self.pairs]
        for side, name in zip(sides, names, strict=True):
            if not any(map(str.strip, side)):
                raise DataError("no line: give one sentence a line", name, code="no-data")
        require_parallel(list(map(len, sides)), names)
        return tuple(zip(*sides, strict=True))

    def scorer(
        self, texts: Sequence[tuple[str, str]], *, check: bool = False
    ) -> Callable[[NBest], dict[str, Float64]]:
        from bpa_ppl.text.words import split_words

        direct, inverse = self._models(texts or self.read())
        check_unknown = make_unknown_check("words of the source sentences", self.pairs[0])

        def score(lists: NBest) -> dict[str, Float64]:
            numbers = {text: n for n, text in enumerate(dict.fromkeys(lists.sources or ()))}
            sources, targets = (list(map(split_words, texts)) for texts in (numbers, lists.strings))
            if check:
                check_unknown(lists, direct.unknown(sources).sum(), sum(map(len, sources)))
            group = np.array([numbers[text] for text in lists.sources or ()], dtype=np.int64)
            source, target, rows = find_distinct(lists, group)
            columns = {}
            for side, model, condition, texts, place, text in (
                ("direct", direct, sources, targets, source, target),
                ("inverse", inverse, targets, sources, target, source),
            ):
                logs = model.log_probabilities(condition, texts, place, text, floor=self.floor)
                columns[f"{self.name}.{side}"] = logs[rows]
            return columns

        return score

    def _models(self, pairs: Pairs) -> tuple[IBM1, IBM1]:
        """Return the models of both directions."""
        from bpa_ppl.extras.phrases.ibm1 import IBM1
        from bpa_ppl.text.words import split_words

        sources, targets = ([split_words(pair[side]) for pair in pairs] for side in (0, 1))
        origin = "the adaptation lists" if self.pairs == SELF else " and ".join(self.pairs)
        if not any(s and t for s, t in zip(sources, targets, strict=True)):
            message = "no pair of sentences with words on both sides: give parallel texts"
            raise DataError(message, origin, parameter="pairs", code="no-data")
        with ThreadPoolExecutor(2) as pool:  # the compiled code releases the GIL
            direct, inverse = pool.map(
                lambda sides: IBM1.estimate(sides[0], sides[1], self.iterations),
                ((sources, targets), (targets, sources)),
            )
        if direct.skipped:
            warn_user(f"{origin}: {direct.skipped} pairs have no words on one side: skipped")
        return direct, inverse
