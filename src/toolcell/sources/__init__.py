"""Where tools come from: core tools, plugins, MCP servers, the client."""
