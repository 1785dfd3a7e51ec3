"""Is a posterior fit to be used? One module for each kind of draws."""
