"""Comparison of adapted weights with simple baselines."""
