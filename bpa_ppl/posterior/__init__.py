"""Posteriors: draws of named values, their statistics, ArviZ's InferenceData, and files."""
