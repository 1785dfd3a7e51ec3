"""Tools around the package that it does not need itself."""
