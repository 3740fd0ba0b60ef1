"""Owns a loop over the OpenAI SDK: Chat Completions until the model has nothing more to call.

Above: the user's program, which brings the client. Below: `adapters.session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolcell.adapters.session import (
    DEFAULT_MAX_TURNS,
    Asked,
    ToolSession,
    answered_all,
    system_text,
)
from toolcell.errors import ToolcellError


async def run_openai(
    client: Any,
    session: ToolSession,
    *,
    messages: Iterable[Mapping[str, Any]],
    max_turns: int = DEFAULT_MAX_TURNS,
    **options: Any,
) -> list[dict[str, Any]]:
    """Ask the model and run its calls until it answers.

    Args:
        client: An `openai.AsyncOpenAI`.
        session: `CodeMode`, `ToolSearch` or a session of one.
        messages: The conversation so far.
        max_turns: Model calls it may take.
        options: Passed to `chat.completions.create`, `model` among them.

    Returns:
        The conversation, with what was added; the last message is the answer.

    Raises:
        ToolcellError: it was not done after `max_turns` model calls.
    """
    talk = [dict(message) for message in messages]
    for _ in range(max_turns):
        tools = session.definitions("openai")
        more = {"tools": tools} if tools else {}
        reply = await client.chat.completions.create(
            messages=_with_system(session, talk), **more, **options
        )
        message = reply.choices[0].message
        talk.append(message.model_dump(exclude_none=True))
        calls = [
            Asked(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
            if call.type == "function"
        ]
        if not calls:
            return talk
        talk += [
            {"role": "tool", "tool_call_id": answer.call_id, "content": answer.text}
            for answer in await answered_all(session, calls)
        ]
    msg = f"the model is not done after {max_turns} calls; raise max_turns"
    raise ToolcellError(msg, code="turn_limit")


def _with_system(session: ToolSession, talk: list[dict[str, Any]]) -> list[dict[str, Any]]:
    added = system_text(session)
    return talk if added is None else [{"role": "system", "content": added}, *talk]
