"""toolcell as an MCP server: any MCP client gets `exec`, `wait` and the direct-only tools."""
