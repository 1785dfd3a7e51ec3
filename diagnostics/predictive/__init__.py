"""Predictive checks, sentences left out, prior sensitivity."""
