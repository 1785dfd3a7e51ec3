"""Public names; `__init__.py` imports each from its module on first use."""

from .fitting import (
    Fitted as Fitted,
    fit as fit,
)
from .mixture import (
    FORMS as FORMS,
    MixtureData as MixtureData,
    Phi as Phi,
    Variant as Variant,
    mixture_data as mixture_data,
    variant_named as variant_named,
)
from .tables import (
    weigh as weigh,
)
