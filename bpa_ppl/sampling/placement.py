"""Where the arrays of an adaptation live: on one device, or shared out over sentences."""

from __future__ import annotations

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from bpa_ppl.models import Bucket, Lists
from bpa_ppl.sampling.base import Data


def place(data: Data) -> Data:
    """Put data on JAX's devices; with several, each holds an equal share of the sentences.

    The numbers of sentences must be multiples of the number of devices (see `tabulate`). What is
    computed from shared data, XLA computes where the data are, and sums over devices.
    """
    devices = jax.devices()
    placed: Data
    if len(devices) == 1:
        placed = jax.device_put(data)
        return placed
    mesh = Mesh(devices, ("sentence",), axis_types=(AxisType.Auto,))

    def shares(*axes: str | None) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*axes))

    rows = shares(None, "sentence", None)
    buckets = tuple(
        Bucket(
            features=shares(None, None, "sentence", None),
            base=rows,
            hypothesis=rows,
            gain=None if bucket.gain is None else rows,
            count=None if bucket.count is None else rows,
            share=None if bucket.share is None else rows,
        )
        for bucket in data.lists.buckets
    )
    whole = jax.tree.map(lambda _: shares(), data.prior)
    sentence = shares("sentence")
    placed = jax.device_put(data, Data(Lists(buckets, sentence, sentence, sentence), whole))
    return placed
