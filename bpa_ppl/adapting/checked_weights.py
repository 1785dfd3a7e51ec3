"""What a model of lists may not contain, besides what no model may (`densities.own_models`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bpa_ppl.densities.own_models import CheckedSites, find_parents, is_improper, model_error
from bpa_ppl.errors import UsageError, list_names
from bpa_ppl.posterior.weight_draws import FEATURE, OTHER_FEATURE, SENTENCE, WEIGHTS

#: The lists among the sites of a model.
LISTS = "the lists"


class CheckedWeights(CheckedSites):
    """Refuses sites and plates that a model of lists cannot have, as soon as it reaches them.

    Args:
        model: a NumPyro program.
        features: the number of free features.
        sentences: the number of sentences.

    >>> import numpyro
    >>> model = CheckedWeights(lambda: numpyro.plate("sentence", 3), features=2, sentences=5)
    >>> model()
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: the plate sentence of the model has 3 members, but there are 5 ...
    """

    def __init__(self, model: Callable[..., Any], features: int, sentences: int):
        self._features, self._sentences = features, sentences
        super().__init__(model)

    def process_message(self, site: dict[str, Any]) -> None:
        """Refuse a site before NumPyro draws its value."""
        name = site.get("name")
        if site["type"] in ("sample", "deterministic") and name in (FEATURE, OTHER_FEATURE):
            problem = f"the site {name} of the model has the name of a dimension of the weights"
            raise model_error(f"{problem}: rename it", "bad-name")
        super().process_message(site)

    def postprocess_message(self, site: dict[str, Any]) -> None:
        """Refuse log densities, and weights, of other shapes than they need."""
        super().postprocess_message(site)
        if site["type"] in ("sample", "deterministic") and site.get("name") == WEIGHTS:
            require_shape(np.shape(site["value"]), self._features)

    def check_prior(self, name: Any, site: Mapping[str, Any]) -> None:
        """Refuse a latent site with an improper prior, or one that cannot be sampled."""
        super().check_prior(name, site)
        if is_improper(site):
            problem = f"the site {name} of the model has an improper prior: give it a wide proper"
            raise model_error(
                f"{problem} one, such as numpyro.distributions.Normal(0, 10)", "not-supported"
            )

    def check_plate(self, name: Any, size: int, subsample_size: int | None) -> None:
        """Refuse a plate of a part of the data, or of another number of sentences."""
        super().check_plate(name, size, subsample_size)
        if name == SENTENCE and self._sentences != size:
            raise model_error(
                f"the plate {SENTENCE} of the model has {size} members, but there are "
                f"{self._sentences} sentences: write numpyro.plate('{SENTENCE}', "
                "len(lists.oracle))",
                "mismatch",
            )


def require_shape(shape: tuple[int, ...] | None, features: int, sites: Sequence[str] = ()) -> None:
    """Raise a UsageError unless the site `weights` has one value for each free feature.

    Args:
        shape: of the site; None if there is none.
        features: the number of free features.
        sites: of the model, for the message.
    """
    if shape != (features,):
        problem = f"its shape is {shape}"
        if shape is None:
            problem = f"it has the sites {list_names(sites) or 'none'}; call "
            problem += f'numpyro.deterministic("{WEIGHTS}", values) with the vector of all weights'
        needed = f"the model needs a site `weights` of shape ({features},)"
        raise UsageError(
            f"{needed}, one value for each of the {features} free features: {problem}",
            parameter="model",
        )


def find_unused(
    program: Callable[..., None],
    data: Mapping[str, Any],
    latent: Mapping[str, Any],
    observed: Sequence[str],
) -> str | None:
    """Return what the observations of a model do not depend on, as the end of a sentence.

    Lists change the posterior of the weights if an observation depends on the lists, and on the
    weights or a site that the weights depend on. None if one does.

    Args:
        program: a NumPyro program of lists and a prior.
        data: its arguments by name, with the lists as `LISTS`.
        latent: an array, or its shape and type, for each latent site.
        observed: the observed sites.

    Raises:
        UsageError: if the weights depend on no latent site.

    >>> import numpyro
    >>> from numpyro.distributions import Normal
    >>> def program(lists):
    ...     numpyro.sample("weights", Normal(0.0, 1.0))
    ...     numpyro.sample("gains", Normal(0.0, 1.0), obs=lists)
    >>> find_unused(program, {LISTS: np.zeros(3)}, {"weights": np.zeros(())}, ["gains"])
    'nothing that depends on its weights, so their posterior equals their prior'
    """
    parents = find_parents(program, data, latent)

    def ancestors(name: str) -> set[str]:
        """Return a site with all latent sites, and the lists, that it is computed from."""
        names = {name}
        for _ in parents:
            names.update(*(parents.get(one, ()) for one in tuple(names)))
        return names

    of_weights = ancestors(WEIGHTS) & latent.keys()
    if not of_weights:
        problem = f"the site {WEIGHTS} of the model is a constant: draw it with numpyro.sample, or"
        raise model_error(f"{problem} compute it from sites that are drawn", "not-supported")
    if not observed:
        return "nothing, so its posterior equals its prior"
    related = [names for name in observed if of_weights & (names := ancestors(name))]
    if not related:
        return "nothing that depends on its weights, so their posterior equals their prior"
    if not any(LISTS in names for names in related):
        return "nothing that depends on its weights and the lists, so the lists change nothing"
    return None
