"""The only doorway through which any tool runs, and the catalog as one run sees it."""
