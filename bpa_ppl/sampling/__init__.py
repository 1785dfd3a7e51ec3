"""From a target, or any NumPyro program, to checked draws."""
