"""What the model sees: the visible tools of a run, and the check that nothing else is sent."""
