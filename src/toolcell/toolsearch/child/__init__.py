"""The locked child process that `tool_search_code` runs in."""
