"""Search over a snapshot: BM25F over names, owners, descriptions and parameters."""
