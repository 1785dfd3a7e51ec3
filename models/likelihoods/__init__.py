"""Likelihoods of the adaptation sentences, chosen by name."""
