"""Public fakes for tests: a scripted model, a clock, MCP servers."""
