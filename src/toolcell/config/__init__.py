"""The config contract: the tree as documented models, its files, and what it comes to for a run."""
