"""Instance weighting: which phrase pairs of a large table help in a new domain.

After G. Foster, C. Goutte and R. Kuhn, "Discriminative instance weighting for domain adaptation in
statistical machine translation", EMNLP 2010.
"""

from bpa_ppl.models.instance_weighting.fitting import Fitted, fit
from bpa_ppl.models.instance_weighting.mixture import (
    FORMS,
    MixtureData,
    Phi,
    Variant,
    mixture_data,
    variant_named,
)
from bpa_ppl.models.instance_weighting.tables import weigh

__all__ = [
    "FORMS",
    "Fitted",
    "MixtureData",
    "Phi",
    "Variant",
    "fit",
    "mixture_data",
    "variant_named",
    "weigh",
]
