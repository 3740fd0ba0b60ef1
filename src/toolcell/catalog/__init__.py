"""Descriptors, ids, every name, hints, search: what a run's hidden catalog knows."""
