"""How good candidates are: metrics, columns, oracles and preferences."""
