"""Vocabularies, n-grams, language models, and IBM Model 1."""
