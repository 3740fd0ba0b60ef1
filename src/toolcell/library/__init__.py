"""CodeMode: the public Python face."""
