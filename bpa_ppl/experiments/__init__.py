"""What compares and studies, a satellite: learning curves, sweeps, samplers on known targets."""
