"""The OpenAPI document against the gateway, by a tool that makes requests from it."""

import anyio
import anyio.to_thread
import pytest

from tests.gateway.kit import TOKEN, config, gateway
from tests.public import cache, pip_bin

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.timeout(300),
]

# What no document says: a conversation must end with somebody asking something, for one.
LEFT_OUT = "positive_data_acceptance,response_headers_conformance"


async def test_generated_requests_get_the_answers_that_the_document_promises(tmp_path, request):
    """No 5xx, no undocumented status or type, no wrong input taken, no door without the token."""
    # An environment of its own: it wants an older validator than toolcell does.
    programs = await anyio.to_thread.run_sync(
        pip_bin, cache(request), "schemathesis", "schemathesis>=4.32,<5"
    )
    many = {"requestsPerMinute": 10_000_000, "maxRuns": 1000}
    settings = config(tmp_path, gateway={"port": 0, "token": TOKEN, "limits": many})
    async with gateway(settings, [lambda _request: "hello"] * 20_000) as g:
        command = [
            str(programs / "st"),
            "run",
            f"{g.url}/api/openapi.json",
            *("--header", f"Authorization: Bearer {TOKEN}"),
            *("--exclude-path", "/api/events"),  # it stays open
            *("--phases", "coverage,fuzzing", "--max-examples", "15"),
            *("--checks", "all", "--exclude-checks", LEFT_OUT),
            "--continue-on-failure",
        ]
        with anyio.fail_after(55):
            done = await anyio.run_process(command, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout.decode()[-6000:]
