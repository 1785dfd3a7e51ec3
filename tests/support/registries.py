"""All registries of components by name, from the modules that declare them."""

from __future__ import annotations

import importlib

from bpa_ppl.components import Registry, find_plugins
from bpa_ppl.decoding.rules import RULES
from bpa_ppl.diagnostics.check.diagnostic import DIAGNOSTICS
from bpa_ppl.features.source import FEATURES
from bpa_ppl.formats.format import NBEST_FORMATS, WEIGHT_FORMATS
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import PRIORS
from bpa_ppl.samplers.sampler import SAMPLERS
from support.extras import HAS_EXTRAS

REGISTRIES: dict[str, Registry] = {
    "DIAGNOSTICS": DIAGNOSTICS,
    "FEATURES": FEATURES,
    "LIKELIHOODS": LIKELIHOODS,
    "GAINS": GAINS,
    "NBEST_FORMATS": NBEST_FORMATS,
    "PRIORS": PRIORS,
    "RULES": RULES,
    "SAMPLERS": SAMPLERS,
    "WEIGHT_FORMATS": WEIGHT_FORMATS,
}
if HAS_EXTRAS:
    from bpa_ppl.extras.tuning.tuner import TUNERS

    REGISTRIES["TUNERS"] = TUNERS


def forget_plugins() -> None:
    """Look for modules and plug-ins again when they are next asked for."""
    importlib.invalidate_caches()
    find_plugins.cache_clear()
