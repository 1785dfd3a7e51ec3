"""Phrase pairs: extraction from aligned text, tables of counts, mixtures of tables."""
