"""How a posterior was made: settings, versions, seed, signature, and how to make it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.posterior import held

if TYPE_CHECKING:
    from arviz import InferenceData

#: Of the attributes, those with a place of their own.
_APART = ("command",)


def attributes(posterior: InferenceData) -> dict[str, str]:
    """Return the attributes of a posterior in words, those of other programs included.

    >>> from bpa_ppl.posterior import import_arviz
    >>> data = import_arviz().from_dict(posterior={"weights": np.zeros((2, 10))})
    >>> data.attrs["seed"] = 7
    >>> attributes(data)["seed"]
    '7'
    """
    recorded = {**posterior["posterior"].attrs, **posterior.attrs}
    told = {str(k).replace("_", " "): _told(v) for k, v in recorded.items() if k not in _APART}
    variance = _prior_variance(posterior)
    if variance is not None:
        told["prior variance σ_T"] = str(variance)
    return {key: value for key, value in told.items() if value}


def signature(posterior: InferenceData) -> str:
    """Return one line that identifies the numbers of a posterior, in the manner of sacreBLEU.

    >>> from bpa_ppl.posterior import import_arviz
    >>> signature(import_arviz().from_dict(posterior={"weights": np.zeros((2, 10, 3))}))
    'sampler:unknown|chains:2|draws:10'
    """
    attrs, shape = posterior.attrs, posterior["posterior"]["weights"].shape
    settings = _mapping(attrs.get("settings"))
    parts = {
        "sampler": attrs.get("sampler", "unknown"),
        **{key: value for key, value in settings.items() if key not in ("chains", "draws")},
        "chains": shape[0],
        "draws": shape[1],
        **{key: attrs[key] for key in ("model", "seed") if key in attrs},
        **_mapping(attrs.get("versions")),
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def reproduction(posterior: InferenceData) -> tuple[str, str] | None:
    """Return what makes the posterior again, and a sentence about it; None if it is not known.

    The command is that which was recorded; a posterior that was made from Python is made again
    from Python.
    """
    attrs = posterior.attrs
    if "command" in attrs:
        return str(attrs["command"]), "The command that made this posterior:"
    if not {"sampler", "settings", "seed", "source"} <= set(attrs):
        return None
    note = (
        "The call that made this posterior. It does not record the files of the references and of "
        "the canonical weights, nor which lists were selected from its source: fill them in."
    )
    return _call(posterior), note


def _call(posterior: InferenceData) -> str:
    attrs = posterior.attrs
    source = str(attrs["source"])
    lists = "NBEST" if source.startswith("<") else repr(source)
    options = {
        "sampler": str(attrs["sampler"]),
        "prior_variance": _prior_variance(posterior),
        "seed": int(attrs["seed"]),
        "metric": attrs.get("oracle_metric"),
        "ties": attrs.get("oracle_ties"),
        "fixed": list(held(posterior)),
        **_mapping(attrs["settings"]),
    }
    lines = [f"    {key}={value!r}," for key, value in options.items() if value is not None]
    if attrs.get("model", "log_linear") != "log_linear":
        lines.append(f"    model={attrs['model']},")
    return "\n".join(
        [
            "import bpa_ppl as bpa",
            f"pool = bpa.read_nbest({lists}, references=REFERENCES)",
            "posterior = bpa.adapt(",
            "    pool,",
            "    bpa.read_weights(WEIGHTS),",
            *lines,
            ")",
        ]
    )


def _prior_variance(posterior: InferenceData) -> float | list[float] | None:
    """Return σ_T: one number where all weights have the same."""
    if "constant_data" not in posterior or "prior_variance" not in posterior["constant_data"]:
        return None
    values = np.asarray(posterior["constant_data"]["prior_variance"].values, np.float64)
    return float(values[0]) if np.all(values == values[0]) else values.tolist()


def _mapping(text: Any) -> dict[str, Any]:
    """Read an attribute that was stored as JSON; that of another program may be anything."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _told(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    found: Mapping[str, Any] = _mapping(value)
    if found or value == "{}":
        return ", ".join(f"{key} {item}" for key, item in found.items())
    return str(value)
