"""Comparisons and studies (not part of the core): learning curves, sweeps, known targets."""
