"""Owns `toolcell gateway`: the HTTP door, from start to drain.

Above: `cli.main`. Below: `gateway`, which needs Starlette and Uvicorn (an extra).
"""

from __future__ import annotations

import importlib.util
import sys

import anyio

from toolcell.cli.console import DONE, print_json, print_text
from toolcell.cli.models import named_models
from toolcell.cli.operatorlog import OperatorLog
from toolcell.cli.options import SHARED, Shared
from toolcell.config.edit import write_atomically
from toolcell.config.load import config_path, read_text
from toolcell.config.migrate import migrate
from toolcell.config.tree import Config
from toolcell.errors import ToolcellError
from toolcell.protocol.events import ApprovalRequested, Event

NEEDED = ("starlette", "uvicorn")


def gateway(
    *,
    host: str | None = None,
    port: int | None = None,
    shared: Shared = SHARED,
) -> int:
    """Serve agents over HTTP: an OpenAI-compatible API, and /api for everything else.

    Runs until SIGTERM or Ctrl-C, then lets what is going on come to its end. See docs/gateway.md.

    Args:
        host: The address to listen on, instead of the config's.
        port: The port, instead of the config's.
        shared: Options of every command.
    """
    require_extra()
    for change in migrated(shared):
        _say(f"config: {change}")
    config = shared.load()
    anyio.run(_serve, config, host, port, shared.json)
    return DONE


def require_extra() -> None:
    """Check that what the gateway is built on is installed.

    Raises:
        ToolcellError: it is not; says how to install it.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        message = f"the gateway needs {' and '.join(missing)}; run: pip install 'toolcell[gateway]'"
        raise ToolcellError(message, code="missing_extra")


def migrated(shared: Shared) -> tuple[str, ...]:
    """Rewrite a config file of an older contract (rule 1.3); return a line for each change."""
    file, required = config_path(shared.config)
    text = read_text(file, required=required)
    if text is None:
        return ()
    found = migrate(text, origin=f"config file {str(file)!r}")
    if found.changes:
        write_atomically(file, found.text)
    return found.changes


class GatewayLog(OperatorLog):
    """Writes questions as well; secrets are masked before they come here."""

    diagnostics_only = False

    def emit(self, event: Event) -> None:
        """Write a warning or an error, or how to answer a call that waits for a person."""
        if isinstance(event, ApprovalRequested):
            what = f"{event.tool_id} of agent {event.scope.agent_id} waits for a person"
            how = f"toolcell approvals approve {event.approval_id}"
            _say(f"{what} ({event.reason}): {how}, or deny")
        else:
            super().emit(event)


async def _serve(config: Config, host: str | None, port: int | None, as_json: bool) -> None:
    from toolcell.gateway.server import serving, settle_memory, told_to_stop  # noqa: PLC0415 - an optional extra
    from toolcell.gateway.service import (  # noqa: PLC0415 - an optional extra
        ServiceParts,
        opened_service,
        with_gateway,
    )
    from toolcell.gateway.token import token_path  # noqa: PLC0415 - an optional extra

    config = with_gateway(config, host=host, port=port)
    parts = ServiceParts(log=GatewayLog(), on_progress=_say)
    with told_to_stop() as told:
        async with opened_service(config, parts) as service, serving(service) as url:
            kept = str(token_path()) if config.gateway.token is None else None
            if as_json:
                print_json({"url": url, "tokenFile": kept})
            else:
                where = f"the token in {kept}" if kept else "the token of gateway.token"
                print_text(f"toolcell gateway on {url}; clients send {where}")
            for model in named_models(service.runtime, config):
                if model.problem is not None:
                    _say(f"warning: {model.shown}: {model.problem}")
            settle_memory()
            signal = await told()
            active = service.runs.statistics()["active"]
            _say(f"{signal}: no further requests; {active} runs go on to their end")


def _say(text: str) -> None:
    shown = "".join(char if char.isprintable() else " " for char in text)
    sys.stderr.write(f"toolcell: {shown}\n".encode("utf-8", "backslashreplace").decode())
    sys.stderr.flush()
