"""Children on Ray workers: `tools.swarm.backend: "ray"`."""
