"""Shared fixtures: the one async backend."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
