"""Phrase pairs, a satellite: extraction, tables of counts, mixtures, and latent subdomains.

Nothing else in the package imports it; its commands and feature sources are entry points.
"""
