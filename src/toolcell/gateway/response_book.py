"""Owns which session a response id belongs to, for `previous_response_id`.

In memory: after a restart a client names its session, or sends the conversation.

Above: `responses_request`, the routes. Below: nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from toolcell.gateway.faults import invalid

MAX_RESPONSES: Final = 16_384


class ResponseBook:
    """The latest response ids."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, str] = OrderedDict()
        self._latest: dict[str, str] = {}

    def add(self, response_id: str, session_id: str) -> None:
        """A response was given."""
        self._sessions[response_id] = session_id
        self._latest[session_id] = response_id
        if len(self._sessions) > MAX_RESPONSES:
            old, session = self._sessions.popitem(last=False)
            if self._latest.get(session) == old:
                del self._latest[session]

    def forget(self, session_ids: Collection[str]) -> None:
        """These sessions are no more: nothing goes on from their responses."""
        for session in session_ids:
            self._latest.pop(session, None)
        for response in [r for r, session in self._sessions.items() if session in session_ids]:
            del self._sessions[response]

    def session_of(self, response_id: str) -> str:
        """Return the session that goes on from a response.

        Raises:
            ApiError: 400: it is unknown, or the session has gone on since.
        """
        session = self._sessions.get(response_id)
        param = "previous_response_id"
        if session is None:
            message = (
                "this response is not known (any more); name the session as conversation, or "
                "send the conversation as input"
            )
            raise invalid(message, param=param, code="previous_response_not_found")
        if self._latest.get(session) != response_id:
            message = "the session has gone on since this response; a session has one line"
            raise invalid(message, param=param, code="previous_response_not_latest")
        return session
