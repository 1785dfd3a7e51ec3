"""Studies, sweeps and tuners (not part of the core)."""
