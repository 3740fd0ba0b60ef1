"""toolcell: Code Mode and Tool Search for AI agents."""
