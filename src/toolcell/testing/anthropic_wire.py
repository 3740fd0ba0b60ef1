"""Owns how a scripted answer looks on the Anthropic Messages wire.

Above: `openai_server`. Below: `scripted_model`. Refuses to know: HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from toolcell.testing.scripted_model import Answer, pieces


def message(answer: Answer, model: str) -> dict[str, Any]:
    """Return the answer as one message; arguments must be JSON."""
    prompt, written = answer.usage
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": _content(answer),
        "stop_reason": _stop_reason(answer),
        "stop_sequence": None,
        "usage": {"input_tokens": prompt, "output_tokens": written},
    }


def message_events(answer: Answer, model: str) -> Iterator[dict[str, Any]]:
    """Yield the answer as events, text and arguments in pieces."""
    whole = message(answer, model)
    prompt, written = answer.usage
    usage = {"input_tokens": prompt, "output_tokens": 1}
    begun = {**whole, "content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": begun}
    texts = [answer.text] if answer.text else []
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        started = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": started}
        if is_text:
            deltas = [{"type": "text_delta", "text": p} for p in pieces(answer.text, answer.piece)]
        else:
            arguments = answer.calls[index - len(texts)].arguments
            deltas = [
                {"type": "input_json_delta", "partial_json": p}
                for p in pieces(arguments, answer.piece)
            ]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": written}}
    yield {"type": "message_stop"}


def _content(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        given = json.loads(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
    return blocks


def _stop_reason(answer: Answer) -> str:
    if answer.finish is not None:
        return {"length": "max_tokens", "stop": "end_turn"}.get(answer.finish, answer.finish)
    return "tool_use" if answer.calls else "end_turn"
