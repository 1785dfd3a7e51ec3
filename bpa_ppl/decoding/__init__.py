"""Decision rules: from a posterior over weights to one choice from each list."""
