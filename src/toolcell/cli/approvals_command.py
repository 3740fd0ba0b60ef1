"""Owns `toolcell approvals`: the questions of a running gateway, and their answers.

Above: `cli.main`. Below: the gateway's HTTP API, the standard library's client.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import App, Parameter

from toolcell.app.settings import usable_gateway_token_of
from toolcell.base.jsontext import dumps, loads
from toolcell.cli.console import DONE, print_json, print_table, print_text, printable
from toolcell.cli.options import SHARED, Shared
from toolcell.errors import ConfigError, ToolcellError

TIMEOUT_SECONDS = 30
MAX_ARGUMENTS = 120

app = App(name="approvals", help="Answer what a running gateway asks.")
Url = Annotated[
    str | None,
    Parameter(name="--url", help="The gateway's address; that of the config when absent."),
]


@app.command(name="list")
def list_(*, url: Url = None, shared: Shared = SHARED) -> int:
    """List the calls that wait for a person, the oldest first."""
    found = _request(shared, url, "/api/approvals")["approvals"]
    if shared.json:
        print_json(found)
        return DONE
    rows = [
        [
            each["id"],
            each["toolId"],
            _shortened(dumps(each["arguments"])),
            each["reason"],
            each["sessionId"],
            datetime.fromtimestamp(each["expiresAt"], UTC).strftime("%H:%M:%S"),
        ]
        for each in found
    ]
    print_table(("id", "tool", "arguments", "reason", "session", "expires (UTC)"), rows)
    return DONE


@app.command
def approve(
    approval_id: str,
    *,
    session: Annotated[bool, Parameter(negative="")] = False,
    url: Url = None,
    shared: Shared = SHARED,
) -> int:
    """Let a call run.

    Args:
        approval_id: The id of `toolcell approvals list`.
        session: Let this tool run for the rest of the session, whatever its arguments.
        url: The gateway's address.
        shared: Options of every command.
    """
    reach = "session" if session else "once"
    return _answer(shared, url, approval_id, {"decision": "approve", "reach": reach})


@app.command
def deny(approval_id: str, *, reason: str = "", url: Url = None, shared: Shared = SHARED) -> int:
    """Refuse a call.

    Args:
        approval_id: The id of `toolcell approvals list`.
        reason: Told to whoever made the call.
        url: The gateway's address.
        shared: Options of every command.
    """
    return _answer(shared, url, approval_id, {"decision": "deny", "reason": reason})


def _answer(shared: Shared, url: str | None, approval_id: str, body: dict[str, str]) -> int:
    told = _request(shared, url, f"/api/approvals/{quote(approval_id, safe='')}", body)
    if shared.json:
        print_json(told)
    else:
        print_text("approved" if told["approved"] else "denied")
    return DONE


def _request(
    shared: Shared, url: str | None, path: str, body: dict[str, str] | None = None
) -> dict[str, Any]:
    """Ask the gateway.

    Raises:
        ConfigError: there is no token, or the address is no HTTP address.
        ToolcellError: the gateway cannot be reached, or says no.
    """
    from toolcell.gateway.token import kept_token, token_path  # noqa: PLC0415 - HTTP, when used

    config = shared.load()
    token = usable_gateway_token_of(config) or kept_token()
    if token is None:
        message = (
            f"no gateway token: neither gateway.token nor {str(token_path())!r}; start "
            "`toolcell gateway` first, or name its config file with --config"
        )
        raise ConfigError(message)
    host = config.gateway.host
    base = url or f"http://{f'[{host}]' if ':' in host else host}:{config.gateway.port}"
    if not base.startswith(("http://", "https://")):
        message = f"{base!r} is no address of a gateway; write http://host:port"
        raise ConfigError(message)
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        base.rstrip("/") + path,
        data=None if body is None else dumps(body).encode(),
        headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            value: dict[str, Any] = loads(answer.read())
            return value
    except urllib.error.HTTPError as error:
        raise ToolcellError(_said(error), code="gateway") from error
    except (OSError, ValueError) as error:
        message = f"cannot reach the gateway at {base}: {error}; is `toolcell gateway` running?"
        raise ToolcellError(message, code="gateway") from error


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return printable(str(loads(error.read())["error"]["message"]))
    except (ValueError, KeyError, TypeError):
        return f"the gateway answered {error.code}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_ARGUMENTS else text[: MAX_ARGUMENTS - 1] + "…"
