"""Simple ways to choose, and comparisons of choices with them."""
