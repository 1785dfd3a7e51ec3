"""Is a posterior fit to be used?"""
