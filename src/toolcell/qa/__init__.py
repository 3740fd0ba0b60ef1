"""Scenarios that show, over real HTTP and from the record alone, that a promise is kept."""
