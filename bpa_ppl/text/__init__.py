"""Words and what is learned of them: vocabularies, n-grams, language models, IBM Model 1."""
