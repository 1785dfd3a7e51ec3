"""Checks of posteriors and of samplers, predictive checks, and pages to read them on."""
