"""The loop: prepare, turn, loop."""
