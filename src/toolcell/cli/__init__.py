"""The command line."""

import sys


def main() -> None:
    """Run `toolcell` and leave with its exit code."""
    from toolcell.cli.main import run  # noqa: PLC0415 - keeps `import toolcell.cli` free

    sys.exit(run())
