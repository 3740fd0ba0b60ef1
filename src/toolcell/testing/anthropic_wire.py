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
    calls = iter(answer.calls)
    for index, block in enumerate(whole["content"]):
        arguments = next(calls).arguments if block["type"] == "tool_use" else ""
        started, deltas = _grown(block, arguments, answer.piece)
        yield {"type": "content_block_start", "index": index, "content_block": started}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": written}}
    yield {"type": "message_stop"}


def _grown(
    block: dict[str, Any], arguments: str, piece: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return how a block begins, and the pieces that make it what it is."""
    match block["type"]:
        case "text":
            pieced = pieces(block["text"], piece)
            return {**block, "text": ""}, [{"type": "text_delta", "text": p} for p in pieced]
        case "thinking":
            pieced = pieces(block["thinking"], piece)
            signed = {"type": "signature_delta", "signature": block["signature"]}
            deltas = [{"type": "thinking_delta", "thinking": p} for p in pieced]
            return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
        case _:
            given = [
                {"type": "input_json_delta", "partial_json": p} for p in pieces(arguments, piece)
            ]
            return {**block, "input": {}}, given


def _content(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.thinking:
        signature = f"signed:{len(answer.thinking)}"
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": signature})
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
