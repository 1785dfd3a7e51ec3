"""The log densities that samplers draw from, their coordinates and modes."""
