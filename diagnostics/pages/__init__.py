"""Building blocks of pages, and the summaries that all pages read from a posterior."""
