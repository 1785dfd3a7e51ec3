"""Instance weighting: which phrase pairs of a large table help in a new domain.

After G. Foster, C. Goutte and R. Kuhn, "Discriminative instance weighting for domain adaptation in
statistical machine translation", EMNLP 2010.
"""

from bpa_ppl.models.instance_weighting.fitting import Fitted, fit
from bpa_ppl.models.instance_weighting.mixture import (
    FORMS,
    Phi,
    Problem,
    Variant,
    problem_of,
    variant_named,
)
from bpa_ppl.models.instance_weighting.tables import weigh

__all__ = [
    "FORMS",
    "Fitted",
    "Phi",
    "Problem",
    "Variant",
    "fit",
    "problem_of",
    "variant_named",
    "weigh",
]
