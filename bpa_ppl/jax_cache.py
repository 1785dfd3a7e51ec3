"""JAX's persistent compilation cache: what one run compiles, the next one loads."""

from __future__ import annotations

import jax

from bpa_ppl.caching import cache_folder

_SHORTEST = 0.1  # seconds; JAX by itself keeps only what took a second


def keep_compiled() -> None:
    """Keep compiled programs in our cache folder, unless the user has chosen another one."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _SHORTEST)
