"""Re-estimate weights: MERT, batch MIRA and PRO."""
