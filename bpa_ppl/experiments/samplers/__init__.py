"""Samplers of the papers, and of other packages."""
