"""The check of posteriors: diagnostics by family, and advice."""
