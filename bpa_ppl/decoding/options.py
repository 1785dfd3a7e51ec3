"""The options of `rerank`, `Reranker` and `bpa rerank`, declared once."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Final, TypedDict

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Setting, declared_settings
from bpa_ppl.decoding.rules import RULES, Rule
from bpa_ppl.features.recipe import MovedFiles

_CHOICE = "How candidates are chosen"


class RerankOptions(TypedDict, total=False):
    """The keyword arguments of `rerank`; those left out have their defaults.

    `Reranker` and `bpa rerank` take the same ones.

    Attributes:
        rule: Decision rule: `predictive` (the highest average probability), `viterbi` (the best
            pair of weights and candidate), `map` or `mean` (one weight vector), `mbr` (the
            candidate with the highest expected gain), with settings as in `mbr:gain=bleu`, or
            `best` (a simple way to choose, where the posterior records that it is clearly better,
            else `mean`). By default what the posterior records: `mean` where
            there were no canonical weights, else `predictive`.
        derivations: How equal texts are scored: `separate`, each derivation separately, as
            published, which is the default; or `summed`.
        draws: Number of draws to use, or `all`. They are taken evenly, then moved and stretched so
            that their mean and covariance are those of all. By default 800 for the rules
            `predictive` and `mbr`, which average over draws, and all where the two highest
            probabilities differ by less than 2 %; all for the other rules.
        defaults: Weights of features without one, such as one that was fixed when somebody else
            made the posterior.
        moved_files: New paths of files that features are computed from, by the label of the feature
            source, where they have moved since the adaptation.
        without: Features of the posterior, or labels of several, that some lists lack: their
            weights are left out. By default that is an error.
        ask_below: A choice between two candidates is sure from this probability on; about the other
            lists, ask a person.
        agree: The agreement of sure choices with the judge that is promised, such as 0.9, in place
            of `ask_below`. The probability comes from exact binomial tests of leave-one-out
            predictions on the adaptation lists. If nothing can be promised, no choice is sure.
        confidence: Of this promise: in this share of samples of judged lists it is kept for new
            lists that are drawn like them. By default 0.9; it needs 22 answers without an error to
            promise an agreement of 0.9, and 0.95 needs 29.
        unchecked: Use a posterior even if it fails its check, and references that seem to be those
            of other lists.
        jobs: Processes that rerank; -1 uses every core. Few lists are reranked in this process, and
            the choices are the same. By default 1.
        progress: True draws a bar on standard error.

    >>> options: RerankOptions = {"rule": "mean", "draws": "all"}
    >>> sorted(OPTIONS.keys() & options.keys())
    ['draws', 'rule']
    """

    rule: Annotated[str | Rule | None, Setting(_CHOICE, registry=RULES, recorded=False)]
    derivations: Annotated[str, Setting(_CHOICE, default="separate")]
    draws: Annotated[int | str | None, Setting(_CHOICE, form="INT|all")]
    defaults: Annotated[
        Mapping[str, float] | None,
        Setting(_CHOICE, several=True, form="NAME=NUMBER", option="--default"),
    ]
    moved_files: Annotated[
        MovedFiles | None,
        Setting(_CHOICE, several=True, form="NAME=FILE", option="--moved-file"),
    ]
    without: Annotated[Iterable[str] | None, Setting(_CHOICE, several=True)]
    ask_below: Annotated[float | None, Setting(_CHOICE)]
    agree: Annotated[float | None, Setting(_CHOICE)]
    confidence: Annotated[float | None, Setting(_CHOICE)]
    unchecked: Annotated[bool, Setting(default=False)]
    jobs: Annotated[int, Setting(default=1)]
    progress: Annotated[bool | Reporter, Setting(default=False, option=None)]


#: What is declared of each option, by name.
OPTIONS: Final[Mapping[str, Setting]] = MappingProxyType(declared_settings(RerankOptions))
