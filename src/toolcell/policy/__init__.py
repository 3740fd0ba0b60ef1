"""Who may use which tool: pure functions over names."""
