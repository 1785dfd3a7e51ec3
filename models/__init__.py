"""Probabilistic models of n-best lists, as NumPyro programs, and the parts they are made of."""
