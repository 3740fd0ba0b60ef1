"""toolcell in other people's agent loops: a few lines each. SDKs are imported when used."""
