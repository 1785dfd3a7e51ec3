"""Columns of hypotheses, from records and tables, checked and gathered into lists."""
