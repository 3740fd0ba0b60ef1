"""Owns how a scripted answer looks on the OpenAI Responses wire.

Above: `openai_server`. Below: `scripted_model`. Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcell.testing.scripted_model import Answer, pieces


def response(answer: Answer, model: str) -> dict[str, Any]:
    """Return the answer as one Responses body."""
    prompt, written = answer.usage
    whole: dict[str, Any] = {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": _output(answer),
        "usage": {
            "input_tokens": prompt,
            "output_tokens": written,
            "total_tokens": prompt + written,
            "input_tokens_details": {"cached_tokens": 0},
        },
    }
    if answer.finish == "length":
        whole["status"] = "incomplete"
        whole["incomplete_details"] = {"reason": "max_output_tokens"}
    return whole


def response_events(answer: Answer, model: str) -> Iterator[dict[str, Any]]:
    """Yield the answer as events, text and arguments in pieces."""
    whole = response(answer, model)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        started = (
            {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
        )
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        if item["type"] == "message":
            for piece in pieces(answer.text, answer.piece):
                yield {"type": "response.output_text.delta", **place, "delta": piece}
        else:
            for piece in pieces(item["arguments"], answer.piece):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _output(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append(
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items.extend(
        {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for index, call in enumerate(answer.calls)
    )
    return items
