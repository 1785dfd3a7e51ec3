"""How a posterior was made: settings, versions, seed, signature, and how to make it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bpa_ppl.posterior import Draws

#: Of the attributes, those with a place of their own.
_APART = ("command",)


def attributes(draws: Draws) -> dict[str, str]:
    """Return how draws were made in words, by other programs too.

    >>> attributes(Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",), attrs={"seed": 7}))
    {'seed': '7'}
    """
    found = {k.replace("_", " "): _in_words(v) for k, v in draws.attrs.items() if k not in _APART}
    found |= _recorded_prior(draws)
    return {key: value for key, value in found.items() if value}


def _recorded_prior(draws: Draws) -> dict[str, str]:
    """Return the variance or the covariance of the prior: not every model has one."""
    if "prior_covariance" in draws.constants:
        deviation = np.sqrt(np.diagonal(draws.constants["prior_covariance"]))
        spread = f"standard deviations {deviation.min():.4g} to {deviation.max():.4g}"
        return {"prior covariance": f"{len(deviation)} × {len(deviation)}, {spread}"}
    variance = _prior_variance(draws)
    return {} if variance is None else {"prior variance σ_T": str(variance)}


def signature(draws: Draws) -> str:
    """Return one line that identifies the numbers of a posterior, in the manner of sacreBLEU.

    >>> signature(Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",)))
    'sampler:unknown|chains:2|draws:10'
    """
    attrs, (chains, count) = draws.attrs, draws.shape
    settings = _mapping(attrs.get("settings"))
    parts = {
        "sampler": attrs.get("sampler", "unknown"),
        **{key: value for key, value in settings.items() if key not in ("chains", "draws")},
        "chains": chains,
        "draws": count,
        **{key: attrs[key] for key in ("model", "seed") if key in attrs},
        **_mapping(attrs.get("versions")),
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def reproduction(draws: Draws) -> tuple[str, str] | None:
    """Return what makes the posterior again, and a sentence about it; None if it is not known.

    The command is that which was recorded; a posterior that was made from Python is made again
    from Python.
    """
    attrs = draws.attrs
    if "command" in attrs:
        return str(attrs["command"]), "The command that made this posterior:"
    if not {"sampler", "settings", "seed", "lists"} <= set(attrs):
        return None
    note = (
        "The call that made this posterior. It does not record the files of the references and of "
        "the canonical weights, nor which lists were selected from their file: fill them in."
    )
    return _call(draws), note


def _call(draws: Draws) -> str:
    attrs = draws.attrs
    origin = str(attrs["lists"])
    lists = "NBEST" if origin.startswith("<") else repr(origin)
    options = {
        "sampler": str(attrs["sampler"]),
        "prior_variance": _prior_variance(draws),
        "seed": int(attrs["seed"]),
        "metric": attrs.get("oracle_metric"),
        "ties": attrs.get("oracle_ties"),
        "fixed": list(draws.fixed),
        **_mapping(attrs["settings"]),
    }
    lines = [f"    {key}={value!r}," for key, value in options.items() if value is not None]
    if attrs.get("model", "log_linear") != "log_linear":
        lines.append(f"    model={attrs['model']},")
    return "\n".join(
        [
            "import bpa_ppl as bpa",
            f"lists = bpa.read_nbest({lists}, references=REFERENCES)",
            "posterior = bpa.adapt(",
            "    lists,",
            "    bpa.read_weights(WEIGHTS),",
            *lines,
            ")",
        ]
    )


def _prior_variance(draws: Draws) -> float | list[float] | None:
    """Return σ_T: one number where all weights have the same."""
    if "prior_variance" not in draws.constants:
        return None
    values = np.asarray(draws.constants["prior_variance"], np.float64).reshape(-1)
    return float(values[0]) if np.all(values == values[0]) else values.tolist()


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return an attribute that should be a mapping; that of another program may be anything."""
    return value if isinstance(value, Mapping) else {}


def _in_words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        items = {k: _in_words(v) if isinstance(v, Mapping) else v for k, v in value.items()}
        return ", ".join(f"{key} {item}" for key, item in items.items())
    return str(value)
