"""Owns `toolcell mcp`: toolcell as an MCP server, and signing in to servers that want it.

Above: `cli.main`. Below: `cli.opening`, `mcp_server`. stdout carries the protocol and nothing else.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
from cyclopts import App, Parameter

from toolcell.app.settings import endpoints_of, mcp_servers_of, secret_values_of
from toolcell.calls.redaction import Redactor
from toolcell.cli.console import DONE, Progress, print_error, print_text, printable
from toolcell.cli.opening import Opening, opened
from toolcell.cli.operatorlog import OperatorLog
from toolcell.cli.options import SHARED, Shared
from toolcell.config.env import expand
from toolcell.config.overlay import with_code_mode, with_tool_search
from toolcell.config.resolve import code_mode_options
from toolcell.config.tree import Config
from toolcell.errors import ConfigError
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.sources.mcp.options import McpOptions, tokens_folder
from toolcell.sources.mcp.settings import McpServerSettings

if TYPE_CHECKING:
    from toolcell.mcp_server.http import HttpDoor
    from toolcell.mcp_server.stdio import Pipes

PATIENCE_SECONDS = 8.0
"""A client waits for us to start as we wait for our servers: a slow one joins later."""

app = App(name="mcp", help="Serve MCP clients; sign in to MCP servers.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Clients:
    """Where clients come from, and what they may.

    Attributes:
        http: Listen on HOST:PORT instead of stdio.
        token: Bearer token HTTP clients must send; `${NAME}` reads a variable.
        approvals: Whether clients may approve their own calls.
    """

    http: Annotated[str | None, Parameter(name="--http")] = None
    token: Annotated[str | None, Parameter(name="--token")] = None
    approvals: Annotated[
        Literal["client", "none"] | None,
        Parameter(
            name="--approvals",
            help="Whether clients may approve their own calls. [default: client; none over HTTP]",
        ),
    ] = None

    @property
    def asked(self) -> bool:
        """On stdio the client is a program of the user's own; over HTTP it may be anybody's."""
        return self.approvals == "client" or (self.approvals is None and self.http is None)


CLIENTS = Clients()


@app.command
def serve(
    *,
    clients: Clients = CLIENTS,
    executor: Literal["quickjs", "node"] | None = None,
    guest_api: Literal["catalog", "tools"] | None = None,
    surface: Annotated[
        Literal["code", "tools", "directory"],
        Parameter(help="exec and wait; tool_search, tool_describe and tool_call; those with names"),
    ] = "code",
    shared: Shared = SHARED,
) -> int:
    """Give MCP clients `exec` and `wait` over all configured tools, or Tool Search.

    Serves one client on stdin and stdout, or many over streamable HTTP.
    """
    if surface != "code" and (executor or guest_api):
        msg = "--executor and --guest-api are for --surface code: Tool Search runs no cells"
        raise ConfigError(msg)
    http, token, asks = clients.http, clients.token, clients.asked
    if token is not None and http is None:
        msg = "--token is for --http: a client on stdio is the program that started toolcell"
        raise ConfigError(msg)
    # The MCP SDK takes a second to import: only this command pays for it.
    from toolcell.mcp_server.http import binding, listening  # noqa: PLC0415
    from toolcell.mcp_server.stdio import protocol_pipes  # noqa: PLC0415

    config = (
        with_code_mode(shared.load(), executor=executor, guest_api=guest_api)
        if surface == "code"
        else with_tool_search(shared.load(), mode=surface)
    )
    if http is None:
        with protocol_pipes() as pipes:
            anyio.run(_serve, config, pipes, asks)
    else:
        secret = None if token is None else expand(token, path="--token")
        life = code_mode_options(config, DEFAULT_AGENT).snapshot_ttl_seconds
        with listening(binding(http, secret, parked_seconds=life)) as door:
            anyio.run(_serve, config, door, asks, secret)
    return DONE


async def _serve(
    config: Config, door: Pipes | HttpDoor, asks: bool, token: str | None = None
) -> None:
    from toolcell.mcp_server.asking import ClientApprover  # noqa: PLC0415 - beside the SDK's
    from toolcell.mcp_server.http import HttpDoor  # noqa: PLC0415 - the SDK, as above
    from toolcell.mcp_server.progress import CallProgress  # noqa: PLC0415
    from toolcell.mcp_server.serving import serve as serve_mcp  # noqa: PLC0415

    secrets = secret_values_of(config, endpoints_of(config), mcp_servers_of(config))
    redactor = Redactor(secrets | ({token} if token is not None else frozenset()))
    seconds = config.gateway.limits.approval_ttl_seconds
    progress = CallProgress()
    approver = ClientApprover(redactor, seconds=seconds, asks=asks)
    opening = Opening(
        record=True,
        sinks=(progress,),
        log=OperatorLog(),
        mcp=McpOptions(patience=PATIENCE_SECONDS),
        approver=approver,
    )
    async with opened(config, opening, Progress()) as open_:
        if isinstance(door, HttpDoor):
            print_error(f"serving MCP at {printable(door.address)}")
        await serve_mcp(open_.runtime, progress, approver, door)


@app.command
def login(
    server: Annotated[str, Parameter(help="The name under mcp.servers.")],
    *,
    shared: Shared = SHARED,
) -> int:
    """Sign in to an MCP server that has `oauth` in its settings.

    Prints the address to open in a browser, and waits for the browser to come back.
    """
    from toolcell.sources.mcp.login import login as sign_in  # noqa: PLC0415 - the SDK, as above

    settings = _server(server, shared)

    async def run() -> None:
        await sign_in(server, settings, tokens_folder(), _show)

    anyio.run(run)
    print_text(f"signed in to {printable(server)}")
    return DONE


@app.command
def logout(
    server: Annotated[str, Parameter(help="The name under mcp.servers.")],
    *,
    shared: Shared = SHARED,
) -> int:
    """Forget what signing in to an MCP server gave."""
    from toolcell.sources.mcp.oauth import token_file  # noqa: PLC0415 - the SDK, as above

    had = token_file(server, _server(server, shared), tokens_folder()).forget()
    print_text(f"{'signed out of' if had else 'there was no sign-in to'} {printable(server)}")
    return DONE


def _server(name: str, shared: Shared) -> McpServerSettings:
    servers = mcp_servers_of(shared.load())
    if name not in servers:
        known = ", ".join(sorted(servers)) or "none"
        msg = f"there is no MCP server {name!r} in the config; there is: {known}"
        raise ConfigError(msg)
    return servers[name]


def _show(url: str) -> None:
    sys.stderr.write(f"toolcell: open this address in a browser to sign in:\n{printable(url)}\n")
    sys.stderr.flush()
