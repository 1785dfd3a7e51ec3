"""Priors over weights: built from canonical weights, files, posteriors or NumPyro distributions."""
