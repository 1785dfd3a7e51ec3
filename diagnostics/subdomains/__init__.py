"""What latent subdomains are about, and a page to read it on."""
