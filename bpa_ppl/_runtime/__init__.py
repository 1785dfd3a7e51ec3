"""What every module uses, and nobody needs to read first."""
