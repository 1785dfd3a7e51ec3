"""The options of `rerank`, `Reranker`, `bpa rerank` and `bpa serve`, declared once."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Final, TypedDict

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Setting, declared_settings
from bpa_ppl.decoding.rules import RULES, Rule
from bpa_ppl.features.recipe import MovedFiles

_CHOICE = "How candidates are chosen"


class RerankOptions(TypedDict, total=False):
    """The keyword arguments of `rerank`, which describes them; those left out have their defaults.

    `Reranker`, `bpa rerank` and `bpa serve` take the same ones.
    """

    rule: Annotated[
        str | Rule | None,
        Setting(
            "Decision rule: {names}; with settings as in mbr:gain=bleu (default: what the "
            "posterior records: mean without canonical weights, else predictive).",
            _CHOICE,
            registry=RULES,
            recorded=False,
        ),
    ]
    derivations: Annotated[
        str,
        Setting(
            "How equal texts are scored: separate, each derivation separately, as published "
            "(default); or summed.",
            _CHOICE,
            default="separate",
        ),
    ]
    draws: Annotated[
        int | str | None,
        Setting(
            "Number of draws to use, or all (default: 800 for the rules predictive and mbr, which "
            "average over draws, and all where the two best candidates are nearly equal; all for "
            "other rules).",
            _CHOICE,
            form="INT|all",
        ),
    ]
    defaults: Annotated[
        Mapping[str, float] | None,
        Setting(
            "Weight of a feature without one, as NAME=VALUE.",
            _CHOICE,
            several=True,
            form="NAME=NUMBER",
            option="--default",
        ),
    ]
    moved_files: Annotated[
        MovedFiles | None,
        Setting(
            "New path of a moved feature file, as NAME=FILE.",
            _CHOICE,
            several=True,
            form="NAME=FILE",
            option="--moved-file",
        ),
    ]
    without: Annotated[
        Iterable[str] | None,
        Setting(
            "A feature of the posterior, or the label of several, that the lists lack: its weight "
            "is left out (default: an error).",
            _CHOICE,
            several=True,
            form="NAME",
        ),
    ]
    ask_below: Annotated[
        float | None,
        Setting("A choice between two candidates is sure from this probability on.", _CHOICE),
    ]
    agree: Annotated[
        float | None,
        Setting(
            "Or it is sure if such choices agree with the judge at least this often, such as 0.9, "
            "as a test of leave-one-out predictions promises.",
            _CHOICE,
        ),
    ]
    confidence: Annotated[
        float | None,
        Setting(
            "Of this promise (default: 0.9); 0.9 needs 22 answers without an error to promise an "
            "agreement of 0.9, and 0.95 needs 29.",
            _CHOICE,
        ),
    ]
    unchecked: Annotated[
        bool, Setting("Use a posterior even if it fails its check.", default=False)
    ]
    jobs: Annotated[
        int,
        Setting(
            "Processes that rerank; -1 uses every core. The choices are the same (default: 1).",
            default=1,
        ),
    ]
    progress: Annotated[bool | Reporter, Setting(default=False)]


#: What is declared of each option, by name.
OPTIONS: Final[Mapping[str, Setting]] = MappingProxyType(declared_settings(RerankOptions))
