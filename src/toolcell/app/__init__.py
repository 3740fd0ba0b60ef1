"""Builds, supervises and closes everything; no behaviour of its own."""
