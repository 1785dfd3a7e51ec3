"""Options of `adapt`: one class for Python, the command line and studies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from bpa_ppl.errors import UsageError, checked_seed, nearest, one_of
from bpa_ppl.sampling.base import SAMPLERS
from bpa_ppl.weights import check_named

if TYPE_CHECKING:
    import numpy.typing as npt

    from bpa_ppl.features.base import AnySource
    from bpa_ppl.models.likelihoods.base import Likelihood
    from bpa_ppl.models.priors.base import Prior, PriorFamily
    from bpa_ppl.nbest import NBest
    from bpa_ppl.progress import Reporter
    from bpa_ppl.quality.base import Metric
    from bpa_ppl.quality.oracle import Oracles
    from bpa_ppl.sampling.base import Sampler
    from bpa_ppl.sampling.target import Model
else:
    # The command line reads the types of the fields, and must not load JAX: these take objects, not
    # texts, and the fields that it shows have simpler types there.
    AnySource = Likelihood = Metric = Model = NBest = Oracles = Any
    Prior = PriorFamily = Reporter = Sampler = Any
    npt = SimpleNamespace(ArrayLike=Any)


#: The fields of `AdaptOptions` that a preset chooses, as the papers of Sanchis-Trilles and
#: Casacuberta describe the method. `published` is that of 2015: an isotropic random walk with
#: σ_o = 0.01, burn-in 500, 1000 kept, run four times, so that the check can compare the chains.
#: That of COLING 2010 has a heuristic sample of 100 vectors, δ = 8 and σ_T = 1; the earliest one,
#: of S+SSPR 2010, the weights that MERT visited.
PRESETS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "published": {"sampler": "rwm-isotropic", "likelihood": "oracle"},
        "published-2010": {
            "sampler": "heuristic",
            "likelihood": "oracle",
            "prior_variance": 1.0,
            "settings": {"draws": 100, "delta": 8.0},
        },
        "published-sspr": {"sampler": "weight-trace", "likelihood": "oracle"},
    }
)


@dataclass(frozen=True, kw_only=True)
class AdaptOptions:
    """How weights are adapted: the keyword arguments of `adapt`.

    Args:
        preset: The sampler, its settings, the likelihood and σ_T of a paper: `published` is the
            random walk of 2015, in four chains (`chains=1` is the one of the paper),
            `published-2010` the heuristic sample of COLING 2010 with 100 draws, delta=8 and
            σ_T = 1, `published-sspr` the weight trace of S+SSPR 2010, which needs the development
            set (`extra`). What is named explicitly has precedence.
        sampler: `auto`, `imh`, `nuts`, `rwm`, `laplace`, `map`; as published `heuristic`,
            `rwm-isotropic` and `weight-trace`, whose default likelihood is `oracle`; any kernel of
            NumPyro, `numpyro:HMC`; or a sampler with its settings. None is `auto`. The published
            100 samples of `heuristic` with delta=8 cannot pass `check`, which needs 100 effective
            ones: draws=1000 with delta=50 pass.
        likelihood: `oracle`, as published, `margin`, `risk`, `pairs`, `preference`, or a likelihood
            with its settings. Settings that are left open are derived from the gain, and recorded.
            None is `oracle` for a published sampler, `margin` where the metric is TER, BLEU, chrF,
            `ter+bleu`, WER or CER, `risk` for any other gain, or `pairs` if there are indicators
            such as those of systems, and `preference` for lists without references that carry
            preferences: see `default_likelihood`.
        prior: `isotropic`, as published; a `Prior`; or a family of priors.
        prior_variance: σ_T of the isotropic prior, a variance: one number, one for each free
            feature, or {name: variance} of some features. None means 0.1, and for features without
            a canonical weight a scale that is learned from these sentences: see `Isotropic`.
        seed: The same seed gives the same draws, to the bit on the same machine.
        metric: what makes an oracle, and what a gain is in: `ter`, `bleu`, `chrf`, `wer`, a metric,
            a function, or a column of the lists, which then is no feature: see `oracles`. None is
            that of `oracle`, else `ter` where there are canonical weights or totals, else `chrf`.
        ties: How ties between oracles are broken: `canonical`, by the canonical scores or, without
            canonical weights, by the totals of the lists; or `shared`, where each of the k tied
            candidates counts 1/k. None is `canonical` where there are canonical weights or totals,
            else `shared`. With `canonical`, candidates of equal scores share as well.
        lower_is_better: With equal weights: features of which less is better.
        oracle: oracles found before; then no references are needed.
        prior_only: Skip adaptation; the posterior equals the prior. The lists give no more than the
            features and their spread, and need neither references nor judgements.
        jobs: Processes that score hypotheses; -1 uses every core.
        fixed: Fix a feature at its canonical weight. None fixes `UnknownWordPenalty0`.
        defaults: Weights of features that the canonical weights do not name.
        features: Use only these columns of the lists as features, by name or label. The others
            become extras, here and in `rerank`. By default every column of numbers is one.
        exclude: Do not use these columns as features, by name or label.
        categorical: Columns of texts or numbers, such as `system` or `temperature`, whose values
            become features of 0 and 1 with mean 0, here and in `rerank`. With other features and a
            learned scale of the prior their weights are 0 if they do not explain the order of the
            candidates, which is warned about.
        add: sources of further features with mean 0, by name or with their settings, such as
            `LanguageModel(text="domain.txt")`: the posterior records their recipe, with the hashes
            of their files, and `rerank` computes the same features of new lists.
        pretrained: Without canonical weights, start the weights of the columns of the sources
            `consensus` and `length` at values learned from public judged lists: see
            `bpa_ppl.features.pretrained`. False starts them at 0.
        extra: lists, with references, of the out-of-domain set that the canonical weights were
            tuned on, for the sampler `weight-trace`.
        model: a NumPyro program of (lists, prior, likelihood) with a site `weights`; None is
            `bpa_ppl.log_linear`.
        progress: True draws a bar on standard error.
        settings: of the sampler: `draws`, `warmup`, `chains`, `proposal_variance`, `delta`, …

    Raises:
        UsageError: if a preset, sampler, setting, seed or default does not exist or makes no sense.

    >>> AdaptOptions(preset="published").chosen()
    ('rwm-isotropic', 'oracle')
    """

    preset: str | None = None
    sampler: str | Sampler | None = None
    likelihood: str | Likelihood | None = None
    prior: str | PriorFamily | Prior = "isotropic"
    prior_variance: npt.ArrayLike | Mapping[str, float] | PriorFamily | None = None
    seed: int = 0
    metric: str | Metric | Callable[..., Any] | None = None
    ties: str | None = None
    lower_is_better: str | Iterable[str] | None = None
    oracle: Oracles | None = None
    prior_only: bool = False
    jobs: int = 1
    fixed: Iterable[str] | None = None
    defaults: Mapping[str, float] | None = None
    features: Iterable[str] | None = None
    exclude: Iterable[str] | None = None
    categorical: str | Iterable[str] | None = None
    add: AnySource | Iterable[AnySource] | None = None
    pretrained: bool = True
    extra: NBest | None = None
    model: Model | None = None
    progress: bool | Reporter = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        check_named(self.defaults or {})
        self.chosen()
        if self.sampler is not None or self.settings:  # the default one would load JAX
            self.resolved_sampler()

    def chosen(self) -> tuple[Any, str | Likelihood | None]:
        """Return the sampler and the likelihood, by default the names in the preset.

        Raises:
            UsageError: if there is no such preset.
        """
        preset, sampler, likelihood = self._preset(), self.sampler, self.likelihood
        return (
            preset.get("sampler", "auto") if sampler is None else sampler,
            preset.get("likelihood") if likelihood is None else likelihood,
        )

    def resolved_sampler(self) -> Sampler:
        """Return the sampler with its settings, by default those of the preset.

        >>> AdaptOptions(sampler="imh", settings={"draws": 500}).resolved_sampler().draws
        500
        >>> AdaptOptions(preset="published-2010", settings={"draws": 50}).resolved_sampler()
        Heuristic(draws=50, delta=8.0)
        """
        preset, sampler = self._preset(), self.chosen()[0]
        # Settings of a preset belong to its sampler.
        is_preset = isinstance(sampler, str) and sampler == preset.get("sampler")
        settings = preset.get("settings", {}) if is_preset else {}
        try:
            return SAMPLERS.resolve(sampler, {**settings, **self.settings})
        except UsageError as error:
            name = error.parameter or ""
            meant = nearest(name, [one.name for one in fields(self)])
            if error.code != "unknown-setting" or not meant or "did you mean" in error.message:
                raise
            problem = f"there is no option {name}{meant}"
            raise UsageError(problem, parameter=name, code=error.code) from None

    def chosen_prior_variance(self) -> npt.ArrayLike | Mapping[str, float] | PriorFamily | None:
        """Return σ_T, by default that of the preset; a preset leaves other priors alone.

        >>> AdaptOptions(preset="published-2010").chosen_prior_variance()
        1.0
        """
        is_isotropic = isinstance(self.prior, str) and self.prior == "isotropic"
        if self.prior_variance is None and is_isotropic:
            variance: float | None = self._preset().get("prior_variance")
            return variance
        return self.prior_variance

    def _preset(self) -> Mapping[str, Any]:
        return {} if self.preset is None else PRESETS[one_of(self.preset, PRESETS, "preset")]
