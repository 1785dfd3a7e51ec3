"""Advice for failed diagnostics, in terms of the settings of the sampler.

A setting is named with a value to try, `draws=4000`, as Python and `--set` take it. For draws of
other programs, whose settings are unknown, the advice names no values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpa_ppl.posterior import Draws

_MORE = 4  # times as many draws halve the Monte-Carlo error
_STEP = 2.0  # factor for a step size that is too small or too large
_ACCEPT, _MAX_ACCEPT = 0.9, 0.99  # target acceptance of NUTS
_WARMUP = 1000  # draws that NUTS needs to adapt its metric and step size


class Remedies:
    """Remedies for the sampler of some draws.

    Args:
        draws: with the attributes `sampler` and `settings`, if they are known.

    >>> attrs = {"sampler": "imh", "settings": {"draws": 1000, "warmup": 100}}
    >>> Remedies(Draws({"weights": [[[0.0]]]}, ("LM0",), attrs=attrs)).longer_warmup()
    'raise warmup (warmup=400), or draw more (draws=4000)'
    """

    def __init__(self, draws: Draws):
        recorded = draws.attrs.get("settings")
        self._recorded = isinstance(recorded, Mapping)
        self._settings: Mapping[str, Any] = recorded if isinstance(recorded, Mapping) else {}
        self._nuts = "n_steps" in draws.statistics
        self._leveraged = "likelihood_exponent" in draws.attrs
        # The sampler may have drawn more than its settings say.
        self._again, self._kept = "drawn_again_because" in draws.attrs, draws.shape[1]
        self._step = draws.attrs.get("step_setting")

    def more_draws(self) -> str:
        """Return how to get more effective draws."""
        better = "" if self._nuts else ", or use a sampler that mixes better (nuts)"
        return f"draw more{self._value('draws', _MORE)}{better}"

    def longer_warmup(self) -> str:
        """Return how to make chains independent of their initial values."""
        if not self._recorded:
            return "raise warmup (burn-in), then draws"
        if "warmup" not in self._settings:
            return f"draw more{self._value('draws', _MORE)}, or use nuts with warmup={_WARMUP}"
        limit = max(_MORE * int(self._number("warmup")), 100)
        return f"raise warmup (warmup={limit}), or draw more{self._value('draws', _MORE)}"

    def other_steps(self, larger: bool) -> str:
        """Return how to change the step size."""
        if self._nuts:
            return self._of_nuts(_ACCEPT, "let the warm-up find it")
        if not self._step:
            return "use nuts"
        factor = _STEP if larger else 1 / _STEP
        change = "raise" if larger else "lower"
        return f"{change} {self._step}{self._value(str(self._step), factor)}, or use nuts"

    def no_divergences(self) -> str:
        """Return how to avoid divergences of NUTS."""
        return self._of_nuts(_MAX_ACCEPT, "raise target_accept")

    def more_samples(self) -> str:
        """Return how to get importance weights with a larger effective sample size."""
        leverage = ""
        if "delta" in self._settings or (self._leveraged and not self._recorded):
            leverage = f"raise the leveraging factor delta{self._value('delta', _STEP)}, "
        settable = not self._recorded or "draws" in self._settings
        advice = f"draw more samples{self._value('draws', _MORE)}, " if settable else ""
        return f"{leverage}{advice}or use a Markov-chain sampler (nuts, rwm)"

    def markov_chain(self) -> str:
        """Return the samplers that need no importance weights."""
        return "use a Markov-chain sampler (nuts, rwm)"

    def _of_nuts(self, target: float, action: str) -> str:
        name = "" if "target_accept" in self._settings or not self._recorded else "nuts with "
        return f"{action} ({name}target_accept={target:g}, warmup={_WARMUP})"

    def _number(self, name: str) -> float:
        value = self._settings.get(name)
        if name == "draws" and name in self._settings and self._again:
            return self._kept
        return value if isinstance(value, int | float) else 0

    def _value(self, name: str, factor: float) -> str:
        """Return a value to try, in brackets; an empty text if the setting is unknown."""
        value = self._number(name)
        if not value:
            return f" ({name})" if not self._recorded and name == "draws" else ""
        raised = round(value * factor) if isinstance(value, int) else value * factor
        return f" ({name}={raised:.10g})"
