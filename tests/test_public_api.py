"""The public face: who changes a name, an argument or a default has to say so here."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

import bpa_ppl

FUNCTIONS = {
    "adapt": "nbest prior * sampler='auto' prior_variance=0.1 seed=0 metric='ter' ties='canonical' "
    "oracle=None jobs=1 cache=True fixed=None defaults=None model=log_linear progress=False "
    "**settings",
    "add_features": "nbest sources",
    "check": "posterior thresholds=None",
    "corpus_score": "hypotheses references metric='ter'",
    "iter_nbest": "path * chunk=64 references=None sources=None format='auto' first_id=0 "
    "bad='error' strict=False",
    "oracles": "nbest metric='ter' * ties='canonical' scores=None jobs=1 cache=True progress=None",
    "point_weights": "posterior point='mean' draw=0",
    "read_nbest": "path * references=None sources=None format='auto' first_id=0 bad='error' "
    "strict=False",
    "read_posterior": "path",
    "read_references": "paths",
    "read_weights": "path format='auto'",
    "reestimate": "nbest weights * tuner='mert' metric='bleu' seed=0 fixed=None defaults=None "
    "extra=None progress=False **settings",
    "rerank": "nbest posterior * rule='predictive' derivations='separate' unchecked=False "
    "progress=False",
    "write_nbest": "nbest path weights=None * format='moses'",
    "write_posterior": "posterior path",
    "write_weights": "weights path * template=None format='auto'",
}
#: Class -> public members that are methods, properties or constants.
CLASSES = {
    "BpaError": "exit_code",
    "BpaWarning": "",
    "DataError": "",
    "NBest": "best chosen chunks concatenate from_lists origin references regroup rows scores "
    "select sizes sources text texts totals truncate with_extras with_features with_references "
    "with_sentence_extras with_sentences_of with_sources without without_features",
    "NotConverged": "exit_code",
    "Oracles": "",
    "Report": "as_dict failures passed",
    "Reranked": "changed",
    "UsageError": "",
    "Weights": "names normalised updated values_array",
}


def signature(function: Callable) -> str:
    """Return names and defaults of the parameters: types are mypy's business."""
    words = []
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if kinds.index(parameter.kind) == position and parameter.kind is parameter.KEYWORD_ONLY:
            words.append("*")
        words.append(_word(parameter))
    return " ".join(words)


def _word(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    if parameter.default is parameter.empty:
        return parameter.name
    default = parameter.default
    return f"{parameter.name}={getattr(default, '__name__', repr(default))}"


def test_names() -> None:
    assert sorted(FUNCTIONS | CLASSES) == bpa_ppl.__all__


def test_every_name_is_listed_and_found() -> None:
    assert set(bpa_ppl._PUBLIC) == set(bpa_ppl.__all__)
    assert set(bpa_ppl.__all__) <= set(dir(bpa_ppl))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_of_function(name: str) -> None:
    assert signature(getattr(bpa_ppl, name)) == FUNCTIONS[name]


@pytest.mark.parametrize("name", CLASSES)
def test_members_of_class(name: str) -> None:
    members = [m for m in vars(getattr(bpa_ppl, name)) if not m.startswith("_")]
    assert " ".join(sorted(members)) == CLASSES[name]


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'reranked'"):
        _ = bpa_ppl.reranked
