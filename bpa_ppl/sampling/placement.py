"""Where the arrays of an adaptation live: on one device, or shared out over sentences."""

from __future__ import annotations

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from bpa_ppl.models import Adaptation, Bucket


def place(data: Adaptation) -> Adaptation:
    """Put data on JAX's devices; with several, each holds an equal share of the sentences.

    The numbers of sentences must be multiples of the number of devices (see `tabulate`). What is
    computed from shared data, XLA computes where the data are, and sums over devices.
    """
    devices = jax.devices()
    if len(devices) == 1:
        return jax.device_put(data)
    mesh = Mesh(devices, ("sentence",), axis_types=(AxisType.Auto,))
    shares = lambda *axes: NamedSharding(mesh, PartitionSpec(*axes))  # noqa: E731
    bucket = Bucket(
        differences=shares(None, None, "sentence", None), base=shares(None, "sentence", None)
    )
    layout = Adaptation(
        buckets=(bucket,) * len(data.buckets),
        oracle=shares("sentence"),
        sentence=shares("sentence"),
        prior_mean=shares(),
        prior_variance=shares(),
    )
    return jax.device_put(data, layout)
