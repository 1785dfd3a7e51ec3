"""Feature sources: more features of n-best lists."""
