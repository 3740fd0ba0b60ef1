"""Reading a cell before it runs: what it must not contain, and what is not JavaScript at all."""

from toolcell.codemode.screen.source import MAX_SOURCE_BYTES, cleaned, screen, screened

__all__ = ["MAX_SOURCE_BYTES", "cleaned", "screen", "screened"]
