"""Owns what makes a conversation one that every endpoint accepts.

Above: the loop. Below: `protocol.messages`. Refuses to know: wires, stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolcell.base.identifiers import fresh
from toolcell.protocol.messages import ImagePart, Message, ToolCall

INTERRUPTED = "the call was interrupted; whether it had an effect is not known"
ABORTED = "the run was aborted before this call was over; it may have had an effect"


def with_pairs(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the conversation with exactly one answer directly behind each tool call.

    A process that died in the middle leaves calls without answers, and endpoints refuse those. The
    missing answer says so in the tool's place; no other message is made up (TR-06).
    """
    out: list[Message] = []
    pending: tuple[ToolCall, ...] = ()
    answers: dict[str, Message] = {}

    def settle() -> None:
        out.extend(answers.get(c.id) or answer(c.id, INTERRUPTED, is_error=True) for c in pending)

    for message in messages:
        if message.role == "tool":
            answers.setdefault(message.tool_call_id or "", message)
            continue
        settle()
        out.append(message)
        pending, answers = message.tool_calls, {}
    settle()
    return tuple(out)


def with_own_ids(calls: Sequence[ToolCall], taken: set[str]) -> tuple[ToolCall, ...]:
    """Return the calls with ids that are unique in the run; adds them to `taken`.

    Some models number their calls from the start in each reply, and records are kept by id.
    """
    out = []
    for call in calls:
        own = call.id if call.id and call.id not in taken else fresh("call")
        taken.add(own)
        out.append(call if own == call.id else replace(call, id=own))
    return tuple(out)


def answer(
    call_id: str, text: str, *, is_error: bool, images: tuple[ImagePart, ...] = ()
) -> Message:
    """Return the message that answers a call."""
    return Message(role="tool", text=text, tool_call_id=call_id, is_error=is_error, images=images)
