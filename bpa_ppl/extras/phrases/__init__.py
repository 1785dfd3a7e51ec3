"""Phrase pairs: extraction, tables of counts, mixtures, and latent subdomains."""
