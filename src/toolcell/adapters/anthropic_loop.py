"""Owns a loop over the Anthropic SDK: Messages until the model has nothing more to call.

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


async def run_anthropic(
    client: Any,
    session: ToolSession,
    *,
    messages: Iterable[Mapping[str, Any]],
    system: str | None = None,
    max_turns: int = DEFAULT_MAX_TURNS,
    **options: Any,
) -> list[dict[str, Any]]:
    """Ask the model and run its calls until it answers.

    Args:
        client: An `anthropic.AsyncAnthropic`.
        session: `CodeMode`, `ToolSearch` or a session of one.
        messages: The conversation so far.
        system: The system prompt.
        max_turns: Model calls it may take.
        options: Passed to `messages.create`: `model`, `max_tokens` and others.

    Returns:
        The conversation, with what was added; the last message is the answer.

    Raises:
        ToolcellError: it was not done after `max_turns` model calls.
    """
    talk = [dict(message) for message in messages]
    for _ in range(max_turns):
        prompt = system_text(session, system)
        more: dict[str, Any] = {} if prompt is None else {"system": prompt}
        if tools := session.definitions("anthropic"):
            more["tools"] = tools
        reply = await client.messages.create(messages=talk, **more, **options)
        blocks = [block.model_dump(exclude_none=True) for block in reply.content]
        talk.append({"role": "assistant", "content": blocks})
        calls = [
            Asked(block["id"], block["name"], block["input"])
            for block in blocks
            if block["type"] == "tool_use"
        ]
        if not calls:
            return talk
        answers = await answered_all(session, calls)
        talk.append(
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": answer.call_id,
                        "content": answer.text,
                        "is_error": answer.is_error,
                    }
                    for answer in answers
                ],
            }
        )
    msg = f"the model is not done after {max_turns} calls; raise max_turns"
    raise ToolcellError(msg, code="turn_limit")
