"""Parked cells: how long they live and who may resume them."""
