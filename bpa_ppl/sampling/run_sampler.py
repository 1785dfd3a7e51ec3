"""Draw from a target with a sampler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import jax

from bpa_ppl._runtime.arguments import check_seed
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import Reporter, inherit_progress, no_report, reporter
from bpa_ppl.densities.target import NUMPYRO_LOCK, Sampled, Target
from bpa_ppl.posterior.arviz_functions import require_docstrings
from bpa_ppl.posterior.record import SamplerRecord
from bpa_ppl.samplers.memory import require_memory
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler

#: How the names of JAX's events begin that trace, lower and compile a function.
_COMPILATION = "/jax/core/compile/"
#: From so many values on, sampling may take minutes before the first draws: their number is shown.
_MANY_VALUES = 1000


class SamplerRun(NamedTuple):
    """What a sampler has drawn from a target.

    Attributes:
        target: what was sampled.
        sampled: the result.
        sampler: the record of the sampler.
        seed: of the draws.
        packages: further packages that it runs.
    """

    target: Target
    sampled: Sampled
    sampler: SamplerRecord = SamplerRecord()
    seed: int = 0
    packages: tuple[str, ...] = ()


def run_sampler(
    target: Target,
    sampler: str | Sampler = "auto",
    *,
    seed: int = 0,
    progress: bool | Reporter = False,
    clock: Callable[[], float] = time.perf_counter,
) -> SamplerRun:
    """Draw from a target.

    Args:
        target: from `make_model_target`, or from `log_density`.
        sampler: the sampler, as for `sample`.
        seed: the seed of the draws.
        progress: True shows a bar on standard error.
        clock: a function that returns the time in seconds, for the attributes `sampling_time`,
            without compilation, and `compilation_time`.

    Raises:
        UsageError: if a package of the sampler is missing, or the sampler does not fit the target.

    >>> import numpyro
    >>> from numpyro.distributions import Normal
    >>> from bpa_ppl.densities.model_target import make_model_target
    >>> target = make_model_target(lambda: numpyro.sample("x", Normal(0.0, 1.0)))
    >>> run_sampler(target, "map").sampled.kind
    'point'
    """
    require_docstrings()  # which the check needs
    engine, seed = SAMPLERS.resolve(sampler), check_seed(seed)
    engine.require_packages()
    name, size = SAMPLERS.name_of(engine), target.dimension
    engine, title = target.source.prepare_sampler(engine, seed), f"{target.source.title} {name}"
    if size >= _MANY_VALUES:
        title += f", {size:,} values"
        if progress not in (False, no_report):
            log_info(f"{title}: the starts, the compilation and the warm-up may take minutes")
    with (
        NUMPYRO_LOCK,
        jax.enable_x64(True),
        inherit_progress(progress),
        reporter(progress, title) as report,
        time_compilation(clock) as compiled,
    ):
        report(0, 1, "mode and starts")
        start = clock()
        sampled = draw(engine, target, seed, report)
        compiling = compiled()
        seconds = clock() - start - compiling
    record = SamplerRecord(
        name=name,
        settings=engine.settings(),
        seconds=max(seconds, 0.0) or None,
        compilation=compiling or None,
    )
    return SamplerRun(target, sampled, record, seed, engine.packages)


@contextmanager
def time_compilation(clock: Callable[[], float]) -> Iterator[Callable[[], float]]:
    """Yield a function that returns for how many seconds JAX has compiled in the block.

    Tracing and lowering count, and so does reading a compiled program from the cache. What several
    threads compile at the same time counts once, and so does a function within another one.

    >>> with time_compilation(time.perf_counter) as compiled:
    ...     compiled()
    0.0
    """
    begin, spans = clock(), list[tuple[float, float]]()

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event.startswith(_COMPILATION):
            now = clock()
            spans.append((max(now - duration_secs, begin), now))

    def total() -> float:
        seconds, last = 0.0, begin
        for start, end in sorted(spans):
            seconds += max(end - max(start, last), 0.0)
            last = max(last, end)
        return seconds

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield total
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def draw(
    sampler: Sampler, target: Target, seed: int = 0, progress: Reporter = no_report
) -> Sampled:
    """Return the draws of a sampler, in the coordinates that suit it.

    Raises:
        UsageError: if they do not fit into memory, or the sampler does not fit the target.
    """
    require_memory(target, sampler)
    chosen = target.transformed_for(sampler)
    return chosen.restore(sampler.sample(chosen, seed, progress), seed)
