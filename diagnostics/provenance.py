"""The provenance of a posterior: settings, versions, seed, signature, and how to reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bpa_ppl import models
from bpa_ppl.posterior import Draws

_COMMAND = "command"
#: Attributes that other sections show.
_ELSEWHERE = (_COMMAND, "baselines")


def attributes(draws: Draws) -> dict[str, str]:
    """Return the recorded attributes of draws in words.

    >>> attributes(Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",), attrs={"seed": 7}))
    {'seed': '7'}
    """
    result = {
        k.replace("_", " "): _in_words(v) for k, v in draws.attrs.items() if k not in _ELSEWHERE
    }
    if "prior_covariance" in draws.constants:
        deviation = np.sqrt(np.diagonal(draws.constants["prior_covariance"]))
        spread = f"standard deviations {deviation.min():.4g} to {deviation.max():.4g}"
        result["prior covariance"] = f"{len(deviation)} × {len(deviation)}, {spread}"
    elif (variance := _prior_variance(draws)) is not None:
        result["prior variance σ_T"] = str(variance)
    return {key: value for key, value in result.items() if value}


def different_data(draws: Draws, other: Draws) -> list[str]:
    """Return the kinds of data that two posteriors have other hashes of, see `Sentences.hashes`.

    >>> zeros, data = {"weights": np.zeros((2, 10, 1))}, {"texts": "5f", "gains": "a0"}
    >>> one, other = (Draws(zeros, ("LM0",), attrs={"data": data | {"gains": g}}) for g in "ab")
    >>> different_data(one, other)
    ['gains']
    """
    ours, theirs = (_mapping(one.attrs.get("data")) for one in (draws, other))
    return [name for name, value in ours.items() if theirs.get(name, value) != value]


def signature(draws: Draws) -> str:
    """Return a signature of a posterior, similar to those of sacreBLEU.

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
    """Return code that reproduces the posterior, and a sentence about it; None if it is unknown.

    It is the recorded command, or a call in Python.
    """
    attrs = draws.attrs
    if _COMMAND in attrs:
        return str(attrs[_COMMAND]), "The command that made this posterior:"
    if not {"sampler", "settings", "seed", "lists"} <= set(attrs):
        return None
    note = (
        "The call that made this posterior. Replace the names in capitals, such as the files of "
        "references and canonical weights, which are not recorded, and select the same lists if "
        "only some lists of the file were used."
    )
    return _call(draws), note


def _call(draws: Draws) -> str:
    attrs = draws.attrs
    origin, prior = str(attrs["lists"]), _component("PRIORS", attrs.get("prior"), "isotropic")
    arguments = {
        "sampler": repr(str(attrs["sampler"])),
        "likelihood": _component("LIKELIHOODS", attrs.get("likelihood"), "oracle"),
        "prior": prior,
        "prior_variance": _literal(None if prior else _prior_variance(draws)),
        "seed": str(attrs["seed"]),
        "metric": _literal(attrs.get("oracle_metric")),
        "ties": _literal(attrs.get("oracle_ties")),
        "fixed": repr(list(draws.fixed)),
        **{name: _literal(value) for name, value in _mapping(attrs["settings"]).items()},
        "model": None if attrs.get("model", "log_linear") == "log_linear" else attrs["model"],
    }
    start = {"none": "None", "equal": "'equal'"}
    weights = start.get(str(attrs.get("canonical_weights")), "bpa.read_weights(WEIGHTS)")
    lists = "NBEST" if origin.startswith("<") else repr(origin)
    judged = "gain_column" in attrs or ("oracle_metric" not in attrs and "comparisons" in attrs)
    if not judged:  # judgements and preferences need no references
        lists += ", references=REFERENCES"
    named = [f"{name}={value}" for name, value in arguments.items() if value is not None]
    return (
        f"import bpa_ppl as bpa\nlists = bpa.read_nbest({lists})\nposterior = bpa.adapt(\n"
        + "".join(f"    {argument},\n" for argument in ("lists", weights, *named))
        + ")"
    )


def _literal(value: Any) -> str | None:
    return None if value is None else repr(value)


def _component(registry: str, recorded: Any, default: str) -> str | None:
    """Return the expression of a likelihood or a prior; None for the default.

    A prior without a name, such as one from another posterior, is a name in capitals.
    """
    settings = dict(_mapping(recorded))
    name = settings.pop("name", default)
    if name == default:
        return None
    if name not in getattr(models, registry):
        return registry.removesuffix("S")
    return f"bpa.models.{registry}.resolve({name!r}, {settings!r})"


def _prior_variance(draws: Draws) -> float | list[float] | None:
    """Return σ_T: a single number if it is the same for all weights."""
    if "prior_variance" not in draws.constants:
        return None
    values = np.asarray(draws.constants["prior_variance"], np.float64).reshape(-1)
    return float(values[0]) if np.all(values == values[0]) else values.tolist()


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one for any other value that another program recorded."""
    return value if isinstance(value, Mapping) else {}


def _in_words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        items = {k: _in_words(v) if isinstance(v, Mapping) else v for k, v in value.items()}
        return ", ".join(f"{key} {item}" for key, item in items.items())
    return str(value)
