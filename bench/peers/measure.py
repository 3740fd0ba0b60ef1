"""What every Python peer script shares: a warm median, and one JSON line out."""

import json
import statistics
import sys
import time


async def timed(make, runs):
    """Return the median milliseconds of `runs` warm runs of the coroutine `make()` gives."""
    for _ in range(3):
        await make()
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        await make()
        took.append((time.perf_counter() - start) * 1000)
    return round(statistics.median(took), 2)


def report(**figures):
    """Print one JSON line."""
    sys.stdout.write(json.dumps(figures) + "\n")
