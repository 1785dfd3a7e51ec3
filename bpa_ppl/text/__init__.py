"""Words and what is counted of them: vocabularies, n-grams."""
