"""Owns `toolcell mcp`: toolcell as an MCP server, and signing in to servers that want it.

Above: `cli.main`. Below: `cli.opening`, `mcp_server`. stdout carries the protocol and nothing else.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import anyio
from cyclopts import App, Parameter

from toolcell.cli.console import DONE, Progress, printable
from toolcell.cli.opening import Opening, opened
from toolcell.cli.options import SHARED, Shared
from toolcell.config.env import expand
from toolcell.config.overlay import with_code_mode
from toolcell.errors import ConfigError
from toolcell.protocol.scope import DEFAULT_AGENT

app = App(name="mcp", help="Serve MCP clients; sign in to MCP servers.")


@app.command
def serve(
    *,
    http: Annotated[str | None, Parameter(help="Listen on HOST:PORT instead of stdio.")] = None,
    token: Annotated[
        str | None, Parameter(help="Bearer token HTTP clients must send; ${NAME} reads a variable.")
    ] = None,
    executor: Literal["quickjs", "node"] | None = None,
    guest_api: Literal["catalog", "tools"] | None = None,
    shared: Shared = SHARED,
) -> int:
    """Give MCP clients `exec` and `wait` over all configured tools.

    Serves one client on stdin and stdout, or many over streamable HTTP.
    """
    # The MCP SDK takes a second to import: only this command pays for it.
    from toolcell.mcp_server.http import IDLE_SECONDS, binding  # noqa: PLC0415
    from toolcell.mcp_server.progress import CallProgress  # noqa: PLC0415
    from toolcell.mcp_server.serving import serve as serve_mcp  # noqa: PLC0415

    if token is not None and http is None:
        msg = "--token is for --http: a client on stdio is the program that started toolcell"
        raise ConfigError(msg)
    config = with_code_mode(shared.load(), executor=executor, guest_api=guest_api)
    secret = None if token is None else expand(token, path="--token")
    progress = CallProgress()

    async def run() -> None:
        opening = Opening(sinks=(progress,), asks=False)
        async with opened(config, opening, Progress()) as open_:
            life = open_.runtime.options(DEFAULT_AGENT).snapshot_ttl_seconds
            idle = max(IDLE_SECONDS, life + 60.0)
            at = None if http is None else binding(http, secret, idle_seconds=idle)
            await serve_mcp(open_.runtime, progress, at, on_listening=_listening)

    anyio.run(run)
    return DONE


def _listening(address: str) -> None:
    sys.stderr.write(f"toolcell: serving MCP at {printable(address)}\n")
    sys.stderr.flush()
