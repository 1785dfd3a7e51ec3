"""The steps of `adapt`, one module each."""
