"""Shared fixtures: the one async backend; which tests may run beside which."""

from __future__ import annotations

import pytest

# Files that share something outside their process, run one after the other on one worker.
TOGETHER = {"ray": "/test_ray", "packages": "/test_public_"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one worker, for the fixtures they share."""
    for item in items:
        file = item.nodeid.split("::", 1)[0]
        group = next((name for name, part in TOGETHER.items() if part in file), file)
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
