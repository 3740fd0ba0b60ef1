"""Owns reading a session's conversation for its next run, from any store.

Above: `app`. Below: the stores' port, `compactions`.
"""

from __future__ import annotations

import anyio.to_thread

from toolcell.protocol.conversation import Conversation
from toolcell.sessions.compactions import conversation, needed_from
from toolcell.sessions.contract import Sessions


async def conversation_of(sessions: Sessions, session_id: str) -> Conversation:
    """Return the conversation as the next run takes it up: the latest summary, and the rest.

    Only what is left of it is read; an unknown session has none.
    """
    # In this order: a compaction that comes in between covers nothing that is missed here.
    compactions = await sessions.events(session_id, types=("compacted",))
    after = needed_from(compactions)
    messages = await sessions.events(session_id, types=("message",), after=after)
    # A run ends behind its messages.
    ends = await sessions.events(session_id, types=("run_ended",), after=after)
    return await anyio.to_thread.run_sync(conversation, compactions, messages, ends)
