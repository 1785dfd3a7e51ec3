"""Files in and out: n-best lists, references and weights; one module for each format."""
