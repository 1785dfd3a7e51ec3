"""What every page is built of, and what every page reads of a posterior."""
