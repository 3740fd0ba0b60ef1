"""JSON Schema: validation and rendering as TypeScript."""
