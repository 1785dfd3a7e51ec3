"""Samplers held against each other and against a long reference run."""
