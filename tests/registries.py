"""All registries of components by name, from the packages that declare them."""

from __future__ import annotations

from bpa_ppl import decoding, features, formats, models, quality, sampling
from bpa_ppl.experiments import tuning
from bpa_ppl.registry import Registry

PACKAGES = (decoding, features, formats, models, quality, sampling, tuning)
REGISTRIES = {
    name: value
    for package in PACKAGES
    for name in package.__all__
    if name.isupper() and isinstance(value := getattr(package, name), Registry)
}
