"""Samplers compared with each other and with a long reference run."""
