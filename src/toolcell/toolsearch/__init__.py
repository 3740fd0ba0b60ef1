"""Tool Search: a catalog behind search, describe and call, or behind one short program."""
