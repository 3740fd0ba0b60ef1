"""Runs a program in a guest engine. Has never heard of tools."""
