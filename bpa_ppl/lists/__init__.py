"""The table of candidates, its ids and columns."""
