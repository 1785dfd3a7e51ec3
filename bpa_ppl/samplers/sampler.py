"""The base class of samplers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bpa_ppl._runtime.arguments import require_extra
from bpa_ppl.components import Component, Registry
from bpa_ppl.errors import wrong_value

if TYPE_CHECKING:
    from bpa_ppl._runtime.progress import Reporter
    from bpa_ppl.densities.target import Sampled, Target

#: The default of `adapt`.
DEFAULT = "auto"
#: Most steps of all chains together: they take days, and larger arrays cannot be indexed.
_MAX_STEPS = 10**9


class Sampler(Component, frozen=True):
    """A way to draw from a posterior; its fields are its settings.

    Attributes:
        title: what it is, in words, for pages; empty for the first line of the docstring.
        exact: whether the draws, with their importance weights, follow the posterior.
        any_coordinates: whether it may sample a posterior in other coordinates, such as linear
            functions of its values (see `Hints.transform`), and if it is exact also an unknown
            scale of their prior: its steps or proposals do not depend on their units.
        packages: the optional packages that it runs, which the extra `compare` installs.

    >>> from bpa_ppl.samplers.sampler import SAMPLERS
    >>> SAMPLERS.resolve("imh", {"draws": 500}).settings()["draws"]
    500
    """

    title: ClassVar[str] = ""
    exact: ClassVar[bool] = True
    any_coordinates: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        draws = getattr(self, "warmup", 0) + getattr(self, "draws", 1)
        # None is chosen by the sampler.
        chains, thinning = (getattr(self, name, 1) or 1 for name in ("chains", "thinning"))
        steps = chains * thinning * draws
        if steps > _MAX_STEPS:
            rule, remedy = (
                f"at most {_MAX_STEPS:,} steps",
                "lower draws, chains, warmup or thinning",
            )
            raise wrong_value(rule, steps, "draws", remedy=remedy)

    def require_packages(self) -> None:
        """Refuse a sampler whose package is not installed.

        Raises:
            UsageError: if one is missing.
        """
        for package in self.packages:
            problem = f"this sampler needs {package}"
            require_extra(problem, "compare", package, parameter="sampler")

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        """Draw from the posterior; the seed is the only source of randomness.

        Raises:
            DataError: if the posterior cannot be sampled in this way.
            UsageError: if the sampler does not fit the model.
        """
        raise NotImplementedError


SAMPLERS: Registry[Sampler] = Registry(
    "sampler",
    "bpa_ppl.samplers",
    Sampler,
    {
        "auto": "bpa_ppl.samplers.auto:Auto",
        "imh": "bpa_ppl.samplers.imh:IndependenceMetropolis",
        "laplace": "bpa_ppl.samplers.laplace:Laplace",
        "map": "bpa_ppl.samplers.map:PosteriorMode",
        "numpyro:NAME": "bpa_ppl.samplers.kernels:NumpyroKernel",
        "nuts": "bpa_ppl.samplers.nuts:Nuts",
        "rwm": "bpa_ppl.samplers.rwm:RandomWalkMetropolis",
        "blackjax:NAME": "bpa_ppl.samplers.other_packages:Blackjax",
        "nutpie": "bpa_ppl.samplers.other_packages:Nutpie",
    },
)
