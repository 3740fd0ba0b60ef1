"""Owns thinking on the Anthropic wire: how it is asked for, kept, and handed back.

The wire wants thinking back unchanged and in its place among the blocks of the message it came
with, as long as the tools it called are being answered.

Above: `anthropic_body`, `anthropic_replies`, `request_options`. Below: `protocol`. Refuses to know:
which models think how; the config says so (`compat.thinking`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from toolcell.protocol.messages import Message, ModelRequest, Reasoning

API: Final = "anthropic"
KINDS: Final = frozenset({"thinking", "redacted_thinking"})

ThinkingStyle = Literal["adaptive", "budget"]

MIN_BUDGET: Final = 1024
"""The wire takes no smaller one."""
ANSWER_TOKENS: Final = 1024
"""What a budget leaves for the answer at least, where the reply has a bound."""

_BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
_EFFORTS: Final[Mapping[str, str]] = {"minimal": "low"}
_ON: Final = frozenset({"enabled", "adaptive"})
_TEXT_MARK: Final = "toolcell_text"
_CALL_MARK: Final = "toolcell_call"


def thinking_options(level: str, style: ThinkingStyle, limit: int | None) -> dict[str, Any]:
    """Return the options that ask for a level of thinking.

    Args:
        level: `none` to `max`; an unknown one is handed on for the endpoint to judge.
        style: How the model is asked.
        limit: Tokens the whole reply may have; None when nobody said.
    """
    if level == "none":
        return {"thinking": {"type": "disabled"}}
    if style == "adaptive":
        effort = {"effort": _EFFORTS.get(level, level)}
        return {"thinking": {"type": "adaptive"}, "output_config": effort}
    budget = _BUDGETS.get(level, _BUDGETS["medium"])
    if limit is not None:
        budget = min(budget, limit - ANSWER_TOKENS)
    if budget < MIN_BUDGET:
        # The reply's bound is smaller than the smallest budget: there is no room to think in.
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def fit_thinking(body: dict[str, Any], request: ModelRequest) -> None:
    """Make the rest of a body agree with its thinking, where the wire would refuse it otherwise."""
    given = body.get("thinking")
    kind = given.get("type") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or kind not in _ON:
        return
    if kind == "enabled" and _began_without(request.messages):
        # A turn that began without thinking must end so.
        del body["thinking"]
        return
    if "max_tokens" not in request.options:
        # The bound of the reply is ours, and thinking counts towards it.
        body["max_tokens"] += _expected(given, body.get("output_config"))
    for name in ("temperature", "top_p", "top_k"):
        # Thinking models are sampled in one way.
        body.pop(name, None)


def _expected(thinking: Mapping[str, Any], config: object) -> int:
    """Return how many tokens thinking may take."""
    budget = thinking.get("budget_tokens")
    if isinstance(budget, int):
        return budget
    effort = config.get("effort") if isinstance(config, Mapping) else None
    return _BUDGETS.get(str(effort), _BUDGETS["high"])


def kept_thinking(blocks: Sequence[Mapping[str, Any]]) -> Reasoning | None:
    """Return the thinking of a reply; marks say what stood between when it was not all in front."""
    kinds = [block.get("type") in KINDS for block in blocks]
    count = sum(kinds)
    if not count:
        return None
    if all(kinds[:count]):
        return Reasoning(API, tuple(blocks[:count]))
    items: list[Mapping[str, Any]] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                text = block.get("text")
                items.append({"type": _TEXT_MARK, "chars": len(text) if text else 0})
            case "tool_use":
                items.append({"type": _CALL_MARK})
            case kind if kind in KINDS:
                items.append(block)
    return Reasoning(API, tuple(items))


def with_thinking(message: Message, calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks of an assistant's message, its thinking in its place."""
    kept = message.reasoning
    items = kept.items if kept is not None and kept.api == API else ()
    last = max((i for i, item in enumerate(items) if item.get("type") == _TEXT_MARK), default=-1)
    text, left = message.text, list(calls)
    out: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        kind = item.get("type")
        if kind == _TEXT_MARK:
            # The record may hold another text than was counted, with secrets masked.
            end = len(text) if index == last else item.get("chars", 0)
            out += _text(text[:end])
            text = text[end:]
        elif kind == _CALL_MARK:
            out += left[:1]
            left = left[1:]
        else:
            out.append(dict(item))
    return [*out, *_text(text), *left]


def _text(text: str) -> list[dict[str, Any]]:
    """The wire refuses blank text."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _began_without(messages: Sequence[Message]) -> bool:
    """Whether the turn that goes on, with calls and their answers, began without thinking."""
    first: Message | None = None
    for message in reversed(messages):
        if message.role == "user":
            break
        if message.role == "assistant":
            first = message
    return first is not None and (first.reasoning is None or first.reasoning.api != API)
