"""Names of components with settings after them: one form for all kinds, in Python as elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bpa_ppl as bpa
from bpa_ppl import Draws, UsageError, from_lists
from bpa_ppl.components import Registry
from bpa_ppl.decoding.rules import RULES
from bpa_ppl.features.source import FEATURES
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.metrics.metric import METRICS
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import PRIORS
from bpa_ppl.sampling.sampler import SAMPLERS

pytestmark = pytest.mark.filterwarnings("ignore:.* counts the candidates:bpa_ppl.BpaWarning")

LISTS = from_lists(
    [["a b", "a c", "b"]] * 4, [[[0.0], [1.0], [2.0]]] * 4, ["x"], references=["a b"] * 4
)


@pytest.mark.parametrize(
    ("registry", "text", "name", "settings"),
    [
        (SAMPLERS, "nuts:warmup=50,chains=2", "nuts", {"warmup": 50, "chains": 2}),
        (SAMPLERS, "numpyro:HMC,step_size=0.5", "numpyro:HMC", {"step_size": 0.5}),
        (LIKELIHOODS, "preference:slip=0", "preference", {"slip": 0}),
        (PRIORS, "isotropic:variance=0.5", "isotropic", {"variance": 0.5}),
        (METRICS, "chrf:word_order=2", "chrf", {"word_order": 2}),
        (RULES, "mbr:gain=bleu", "mbr", {"gain": "bleu"}),
        (
            NBEST_FORMATS,
            "plain:list_size=2,scores=a,b",
            "plain",
            {"list_size": 2, "scores": ("a", "b")},
        ),
        (FEATURES, "lexicon=a.fr,a.en", "lexicon", {"pairs": ("a.fr", "a.en")}),
        (FEATURES, "lm=in.txt,order=2", "lm", {"text": "in.txt", "order": 2}),
        (FEATURES, "length:ratio=true", "length", {"ratio": True}),
        (METRICS, "ter:", "ter", {}),
    ],
)
def test_a_text_is_a_name_with_settings(
    registry: Registry, text: str, name: str, settings: dict[str, object]
) -> None:
    assert registry.parse(text) == (name, settings)
    assert registry.resolve(text) == registry.resolve(name, settings)


def test_settings_replace_those_after_the_name() -> None:
    assert LIKELIHOODS.resolve("margin:gamma=4", {"gamma": 1}) == LIKELIHOODS.resolve(
        "margin:gamma=1"
    )


@pytest.mark.parametrize(
    ("registry", "text", "code", "mention"),
    [
        (SAMPLERS, "nutz:warmup=50", "unknown-name", "sampler 'nutz': choose one of"),
        (
            SAMPLERS,
            "nuts:50",
            "invalid-setting",
            "settings of the sampler nuts are written NAME=VALUE",
        ),
        (
            SAMPLERS,
            "numpyro:HMC,step=1",
            "unknown-setting",
            "sampler HMC has no setting step",
        ),
        (LIKELIHOODS, "margin:gama=4", "unknown-setting", "did you mean gamma"),
        (LIKELIHOODS, "margin=4", "invalid-setting", "margin:NAME=VALUE"),
        (FEATURES, "length=x", "invalid-setting", "length:NAME=VALUE, not 'length=x'"),
    ],
)
def test_mistakes_are_named(registry: Registry, text: str, code: str, mention: str) -> None:
    with pytest.raises(UsageError, match=mention) as caught:
        registry.resolve(text)
    assert caught.value.code == code


def test_functions_take_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a b\nb a\n" * 20)
    posterior = bpa.adapt(
        LISTS,
        None,
        gain="CHRF:word_order=2",
        likelihood="margin:gamma=3",
        prior="isotropic:scale=0.2",
        sampler="imh:draws=50",
        add="lm=in.txt,order=2",
    )
    draws = bpa.as_draws(posterior)
    assert draws.record.likelihood.settings["gamma"] == 3
    result = bpa.rerank(LISTS, posterior, rule="mbr:gain=chrf", unchecked=True)
    assert len(result.texts) == len(LISTS)


@pytest.mark.parametrize("function", [bpa.Reranker, lambda *a, **b: bpa.rerank(LISTS, *a, **b)])
def test_an_unknown_keyword_is_named(function: Callable[..., object]) -> None:
    draws = Draws({"weights": np.ones((1, 4, 1))}, ("x",))
    with pytest.raises(TypeError, match="rules"):
        function(draws, unchecked=True, rules="mean")
