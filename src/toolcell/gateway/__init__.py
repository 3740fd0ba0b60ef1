"""The HTTP door: OpenAI-compatible endpoints, and `/api` for everything else."""
