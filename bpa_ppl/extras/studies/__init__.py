"""Studies: grids of settings on many domains, their results, figures and pages."""
