"""The page about one posterior."""
