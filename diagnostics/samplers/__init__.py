"""Comparison and calibration of samplers."""
