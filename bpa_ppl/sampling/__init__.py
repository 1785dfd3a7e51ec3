"""Samplers of the posterior over weights, and `adapt`, which runs them."""
