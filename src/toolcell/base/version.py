"""Owns the version, read from the installed package's metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("toolcell")
except PackageNotFoundError:
    VERSION = "0.0.0"
