"""A catalog behind exec and wait: cells, bridge, continuations."""
