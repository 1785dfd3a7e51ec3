"""Demos of the package, on data that it includes."""
