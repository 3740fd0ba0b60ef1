"""Owns `python -m toolcell.cli`."""

from toolcell.cli import main

main()
