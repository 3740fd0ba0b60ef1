"""Ground: small values built on the standard library alone."""
