"""Lexicon: how well the words of a hypothesis translate those of its source, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from bpa_ppl.component import Count, Share
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.base import SELF, Features, FeatureSource
from bpa_ppl.features.folds import cross_fitted, fold_of
from bpa_ppl.features.once import distinct
from bpa_ppl.features.recipes import check_carried
from bpa_ppl.formats.streams import origin_name, read_lines
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.notes import warn_user

if TYPE_CHECKING:
    from bpa_ppl.text.ibm1 import IBM1

#: Source and target texts.
Pairs = Sequence[tuple[str, str]]

_FOREIGN = 0.5  # share of unknown words from which a text is taken for one of another language


class Lexicon(FeatureSource, frozen=True):
    """IBM Model 1 between source and hypothesis, learned from pairs of sentences.

    The columns are `lexicon.direct`, the natural log of p(hypothesis | source), and
    `lexicon.inverse`, that of p(source | hypothesis); see `bpa_ppl.text.ibm1`. Words stand between
    spaces and are taken as they are: the pairs must be tokenised and cased like the lists.

    Attributes:
        pairs: the source file and the target file of a translation memory, line by line; or
            `self`: the sources and references of the adaptation sentences. The features of those
            sentences then come from models that have not seen them (cross-fitting); equal pairs
            of source and references stand in one fold, and count once.
        iterations: of EM.
        floor: the least probability of a word given a sentence, and that of an unknown word; chosen
            on the adaptation sentences of three domains: 1e-3 is as good, 1e-7 loses 0.4 TER.
        name: the beginning of the names of the columns, so that several can stand side by side.
        per_word: give each log-probability divided by the number of its words, too, as
            `lexicon.direct.perword` and `lexicon.inverse.perword`.
        folds: of the cross-fitting; with fewer different sentences each is left out alone.
        carry: store the pairs of the files in the posterior, which then does not need the files.
        own: the pairs that it was fitted to, or carries.

    Raises:
        UsageError: if `pairs` are neither two files nor `self`.
    """

    main: ClassVar[str | None] = "pairs"
    paths: ClassVar[tuple[str, ...]] = ("pairs",)
    learned: ClassVar[tuple[str, ...]] = ("own",)
    pairs: tuple[str, str] | str
    iterations: Count = 5
    floor: Share = 1e-4
    name: str = "lexicon"
    per_word: bool = False
    folds: Annotated[int, Meta(ge=2)] = 5
    carry: bool = False
    own: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.pairs, str) and self.pairs != SELF:
            raise UsageError(
                f"{self.name} needs two files, the source side and the target side of a "
                f"translation memory, as in lexicon=memory.fr,memory.en, or self; not {self.pairs}"
            )
        super().__post_init__()

    @property
    def needs(self) -> frozenset[str]:
        """The source sentences; and the references, where it learns from them."""
        return frozenset({"sources", "references"} if self.unlearned else {"sources"})

    def fitted(self, nbest: NBest) -> Lexicon:
        """Return the lexicon with the pairs of the adaptation lists, or with those to be carried.

        Raises:
            DataError: if lists to learn from lack sources or references, or files are unsound.
            UsageError: if there is too much text to carry.
        """
        if self.unlearned:
            own = tuple(dict.fromkeys(p for several in self._pairs_of(nbest) for p in several))
            return msgspec.structs.replace(self, own=own)
        if self.carry and not self.holds:
            return msgspec.structs.replace(self, own=self._carried())
        return self

    def opened(self) -> Callable[[NBest], Features]:
        """Learn both directions, and return what computes the columns of one table after another.

        Raises:
            DataError: if the files cannot be read, differ in length, or have nothing to learn.
            UsageError: if it learns from adaptation lists, and has not been fitted to any.
        """
        if self.unlearned:
            raise UsageError(f"{self.name}=self has not learned yet: use fitted(adaptation lists)")
        scorer = self._learned(self.own or self._read())
        scorer.tells = self.pairs != SELF
        return scorer

    def columns(self, nbest: NBest) -> Features:
        """Return the columns, as `opened` computes them."""
        return self.opened()(nbest)

    def cross_fitted_columns(self, nbest: NBest) -> Features:
        """Return the columns of adaptation lists; with `self` each fold is judged by the others.

        Raises:
            DataError: as `opened`; or if there are no two different sentences to learn from.
        """
        if self.pairs != SELF:
            return self.opened()(nbest)
        pairs = self._pairs_of(nbest)
        folds = fold_of(pairs, self.folds)
        if not len(folds) or folds.max() == 0:
            raise DataError(
                f"{self.name}=self learns from one sentence to judge another, and there is only "
                f"{len(set(pairs))}: give more adaptation sentences, or a translation memory",
                nbest.origin,
            )
        return cross_fitted(nbest, folds, partial(self._without, pairs))

    def _without(self, pairs: Sequence[Pairs], left_out: Int64) -> _Scorer:
        """Learn from the pairs of all sentences but some."""
        out = set(left_out.tolist())
        others = (p for s, several in enumerate(pairs) if s not in out for p in several)
        return self._learned(tuple(dict.fromkeys(others)))

    def _pairs_of(self, nbest: NBest) -> list[tuple[tuple[str, str], ...]]:
        """Return for each sentence its source with each of its references."""
        sources, references = nbest.sources, nbest.references
        for what, there in (("source sentences", sources), ("references", references)):
            if there is None:
                raise DataError(
                    f"{self.name}=self learns from the adaptation sentences, and these lists have "
                    f"no {what}: add them, or give a translation memory",
                    nbest.origin,
                )
        several = zip(sources or (), references or (), strict=True)
        return [tuple((source, ref) for ref in refs) for source, refs in several]

    def _read(self) -> Pairs:
        """Return the pairs of the files, one a line."""
        sides = [read_lines(path) for path in self.pairs]
        names = [origin_name(path) for path in self.pairs]
        for side, name in zip(sides, names, strict=True):
            if not any(map(str.strip, side)):
                raise DataError("empty: give a text with one sentence a line", name)
        if len(sides[0]) != len(sides[1]):
            raise DataError(
                f"{len(sides[1])} lines, but {names[0]} has {len(sides[0])}: line n of the one "
                "must translate line n of the other",
                names[1],
            )
        return list(zip(*sides, strict=True))

    def _carried(self) -> tuple[tuple[str, str], ...]:
        pairs = self._read()
        check_carried(chain.from_iterable(pairs), self.pairs)
        return tuple(pairs)

    def _learned(self, pairs: Pairs) -> _Scorer:
        """Return the models of both directions."""
        from bpa_ppl.text.ibm1 import IBM1
        from bpa_ppl.text.words import words_of

        sources, targets = ([words_of(pair[side]) for pair in pairs] for side in (0, 1))
        told = "the adaptation lists" if self.pairs == SELF else " and ".join(self.pairs)
        if not any(s and t for s, t in zip(sources, targets, strict=True)):
            raise DataError("no pair of lines with words on both sides: nothing to learn", told)
        with ThreadPoolExecutor(2) as pool:  # compiled code runs side by side
            made = [
                pool.submit(IBM1.estimate, *sides, self.iterations)
                for sides in ((sources, targets), (targets, sources))
            ]
        direct, inverse = (one.result() for one in made)
        if direct.skipped:
            self._tell(f"{told}: {direct.skipped} pairs have no words on one side: skipped")
        return _Scorer(self, direct, inverse)

    def _tell(self, message: str) -> None:
        warn_user(message)


@dataclass
class _Scorer:
    """Computes the columns of one table after the other; tells once of a foreign text."""

    source: Lexicon
    direct: IBM1
    inverse: IBM1
    tells: bool = False

    def __call__(self, nbest: NBest) -> dict[str, Float64]:
        from bpa_ppl.text.words import words_of

        texts = nbest.sources or ()
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        sources = [words_of(text) for text in numbers]
        targets = [words_of(text) for text in nbest.strings]
        self._check_known(nbest, sources)
        group = np.array([numbers[text] for text in texts], dtype=np.int64)
        source, target, inverse = distinct(nbest, group)
        floor = self.source.floor
        logs = {
            "direct": self.direct.log_probabilities(sources, targets, source, target, floor=floor),
            "inverse": self.inverse.log_probabilities(
                targets, sources, target, source, floor=floor
            ),
        }
        columns = {f"{self.source.name}.{way}": log[inverse] for way, log in logs.items()}
        if self.source.per_word:
            sizes = {"direct": _sizes(targets)[target], "inverse": _sizes(sources)[source]}
            for way, log in logs.items():
                columns[f"{self.source.name}.{way}.perword"] = (log / sizes[way])[inverse]
        return columns

    def _check_known(self, nbest: NBest, sources: Sequence[Sequence[str]]) -> None:
        unknown = self.direct.unknown(sources).sum() / max(sum(map(len, sources)), 1)
        if self.tells and unknown > _FOREIGN:
            self.tells = False
            warn_user(
                f"{nbest.origin}: {unknown:.0%} of the words of the source sentences are not in "
                f"{self.source.pairs[0]}: is it in the language of the sources, and tokenised and "
                "cased like them?"
            )


def _sizes(sentences: Sequence[Sequence[str]]) -> Float64:
    """Return the numbers of words; one that is empty counts as one word."""
    return np.array([max(len(words), 1) for words in sentences], dtype=np.float64)
