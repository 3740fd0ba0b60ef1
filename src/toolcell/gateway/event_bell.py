"""Owns waking whoever follows a session's record when it grows.

Events themselves are read from the store, so that what a follower sees has places, survives a lost
connection and is the same for everybody.

Above: `service`, the routes. Below: `protocol.events`.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

import anyio

from toolcell.protocol.events import Event


class EventBell:
    """A sink that rings.

    A bell lasts as long as somebody waits for it: clients may follow sessions that never begin.
    """

    def __init__(self) -> None:
        self._bells: WeakValueDictionary[str, anyio.Event] = WeakValueDictionary()
        self.closed = False

    @property
    def followed(self) -> int:
        """How many sessions somebody waits for."""
        return len(self._bells)

    def emit(self, event: Event) -> None:
        """Ring for the session of an event."""
        if event.scope is not None:
            bell = self._bells.pop(event.scope.session_id, None)
            if bell is not None:
                bell.set()

    def bell(self, session_id: str) -> anyio.Event:
        """Return what is set with the next event of a session, or when the bell is closed."""
        bell = self._bells.get(session_id)
        if bell is None:
            bell = self._bells[session_id] = anyio.Event()
            if self.closed:
                bell.set()
        return bell

    def close(self) -> None:
        """Wake everybody; nothing more will come."""
        self.closed = True
        for bell in list(self._bells.values()):
            bell.set()
        self._bells.clear()
