"""Owns asking the person behind an MCP client before a call runs (rule 3.5).

A question goes to the client whose session the call is of, over a request of it that is open, one
at a time. Whatever is no clear yes is a no: silence, a form sent back empty, anything malformed.

Above: the protocol server, client sessions. Below: `protocol.approvals`. Refuses to know: the MCP
SDK, rules, who may be asked at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

import anyio

from toolcell.base.jsontext import dumps
from toolcell.calls.redaction import Redactor
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest

ANSWER_SECONDS: Final = 600.0
"""How long a question waits, its turn included; as long as one of the gateway."""
MAX_SHOWN: Final = 2_000
MAX_NAME: Final = 200
MAX_GRANTS: Final = 1_024

FORM: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether this call may run.",
            "enum": ["deny", "once", "session"],
            "enumNames": ["Deny", "Allow once", "Allow this tool for the session"],
        }
    },
    "required": ["decision"],
}
"""In the words every revision with elicitation knows; the safe choice stands first."""

NO_ELICITATION: Final = (
    "nobody can be asked: this MCP client offers no elicitation. Allow it with a rule in "
    "tools.approvals.rules, or use a client that can ask its user"
)
OFF: Final = (
    "clients are not asked here. Allow it with a rule in tools.approvals.rules, or start toolcell "
    "mcp serve with --approvals client when every client speaks for someone who may approve"
)
DENIED: Final = "the client's user denied it"
DISMISSED: Final = "the client's user closed the question without an answer"
MALFORMED: Final = "the client gave no usable answer to the question"
GONE: Final = "the client left before its user answered"


class ChannelClosedError(Exception):
    """The request that a question was to go over has ended; nothing was asked."""


class NoAnswerError(Exception):
    """The client refused the question, or what came back is no answer at all."""


class Channel(Protocol):
    """A way to the person while one request of the client is open."""

    async def ask(self, message: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `{action, content?}` as the client sent it.

        Raises:
            ChannelClosedError: nothing was asked.
            NoAnswerError: something was.
        """
        ...


class Desk:
    """The questions of one client session."""

    def __init__(self, show: Callable[[ApprovalRequest], str], seconds: float) -> None:
        self._show = show
        self._seconds = seconds
        self._channels: list[Channel] = []
        self._opened = anyio.Event()
        self._turn = anyio.Lock()
        self._grants: set[str] = set()
        self._able = False

    @contextmanager
    def open_over(self, channel: Channel | None) -> Iterator[None]:
        """Ask over `channel` while the block runs; None for a client that cannot be asked."""
        if channel is None:
            yield
            return
        self._able = True
        self._channels.append(channel)
        self._opened.set()
        try:
            yield
        finally:
            self._channels.remove(channel)

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the person's answer; no when there is none in time."""
        if not self._able:
            return _no(f"tool {request.tool_name!r} needs approval and {NO_ELICITATION}")
        with anyio.move_on_after(self._seconds):
            async with self._turn:
                if request.tool_id in self._grants:
                    return ApprovalAnswer(approved=True, reason="allowed before, for the session")
                return await self._asked(request)
        return _no(f"the client's user did not answer within {self._seconds:g} seconds")

    async def _asked(self, request: ApprovalRequest) -> ApprovalAnswer:
        message = self._show(request)
        while True:
            channel = await self._channel()
            try:
                said = await channel.ask(message, FORM)
            except ChannelClosedError:
                if channel in self._channels:
                    return _no(GONE)
                continue
            except NoAnswerError:
                return _no(MALFORMED)
            return self._understood(request, said)

    async def _channel(self) -> Channel:
        """Return the newest open channel; a call may go on between two requests of its client."""
        while not self._channels:
            self._opened = anyio.Event()
            await self._opened.wait()
        return self._channels[-1]

    def _understood(self, request: ApprovalRequest, said: Mapping[str, Any]) -> ApprovalAnswer:
        if said.get("action") == "decline":
            return _no(DENIED)
        if said.get("action") == "cancel":
            return _no(DISMISSED)
        content = said.get("content")
        decision = content.get("decision") if isinstance(content, Mapping) else None
        if said.get("action") != "accept" or decision not in ("deny", "once", "session"):
            return _no(MALFORMED)
        if decision == "deny":
            return _no(DENIED)
        if decision == "session" and len(self._grants) < MAX_GRANTS:
            self._grants.add(request.tool_id)
        return ApprovalAnswer(approved=True, reason="allowed by the client's user")


class ClientApprover:
    """An `Approver` that asks the client a call came from.

    Args:
        redactor: Masks secrets in what a person is shown.
        seconds: How long a question waits.
        asks: Whether clients may approve their own calls; else every question is answered no.
    """

    def __init__(
        self, redactor: Redactor, *, seconds: float = ANSWER_SECONDS, asks: bool = True
    ) -> None:
        self._redactor = redactor
        self._seconds = seconds
        self._asks = asks
        self._desks: dict[str, Desk] = {}

    def join(self, session_id: str) -> Desk:
        """Return the desk of a new client session."""
        desk = self._desks[session_id] = Desk(self._shown, self._seconds)
        return desk

    def leave(self, session_id: str) -> None:
        """The session is over, and every yes that held for it."""
        self._desks.pop(session_id, None)

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer of the client's user; the calls of child agents are nobody's."""
        if not self._asks:
            return _no(f"tool {request.tool_name!r} needs approval and {OFF}")
        desk = self._desks.get(request.scope.session_id)
        if desk is None:
            return _no(f"tool {request.tool_name!r} needs approval and no client can be asked")
        return await desk.request(request)

    def _shown(self, request: ApprovalRequest) -> str:
        """Return what a person reads: names, reasons and arguments may be hostile, and long."""
        arguments = _printable(dumps(self._redactor.value(dict(request.arguments))))
        if len(arguments) > MAX_SHOWN:
            arguments = f"{arguments[:MAX_SHOWN]}… ({len(arguments)} characters in all)"
        tool = _printable(request.tool_id)[:MAX_NAME]
        reason = _printable(self._redactor.text(request.reason))[:MAX_NAME]
        return f"{tool} wants to run ({reason}) with:\n{arguments}"


def _printable(text: str) -> str:
    """Return one line without control and direction characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else "�" for char in text)


def _no(reason: str) -> ApprovalAnswer:
    return ApprovalAnswer(approved=False, reason=reason)
