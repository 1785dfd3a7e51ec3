"""Studies and sweeps (not part of the core), tuners, and samplers of others."""
