"""Comparisons of candidates by people: which pair to ask next, the posterior, files, the page."""
