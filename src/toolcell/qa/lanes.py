"""Owns the lanes: ways to offer the same tools, and what a model does in each.

The model is a script, but an honest one: it only uses ids that the answers before gave it.

Above: the scenario. Below: `testing`, `fake_plugin`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolcell.errors import ToolcellError
from toolcell.protocol.messages import ToolCall
from toolcell.qa.fake_plugin import DIRECT_ONLY, WANTED
from toolcell.testing.scripted_model import Step

TICKET: Final = {"title": "Crash on start", "body": "Steps: start it."}
ANSWER: Final = "The ticket is T-1."
_SEARCH: Final = "create a ticket"
_CODE: Final = f"""\
const hits = await openclaw.tools.search({json.dumps(_SEARCH)});
const tool = await openclaw.tools.describe(hits[0].id);
return await openclaw.tools.call(tool.id, {json.dumps(TICKET)});
"""
_CELL: Final = f"""\
const [create] = await catalog.search({json.dumps(_SEARCH)});
return await create({json.dumps(TICKET)});
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One way to offer the tools.

    Attributes:
        name: Its name in the report.
        tools: The `tools` branch of the config.
        steps: What the model does.
        shown: Exactly the names the model is to see; None where all tools are sent.
        through: The control the wanted tool is called through; None for a call of the model's own.
        searches: How many searches the record is to show; None where it does not count them.
        describes: The same for descriptions.
    """

    name: str
    tools: Mapping[str, Any]
    steps: tuple[Step, ...]
    shown: tuple[str, ...] | None = None
    through: str | None = None
    searches: int | None = None
    describes: int | None = None


def _structured_id(body: Mapping[str, Any]) -> str:
    """Return the id of the first hit of the last answer, a single search or a batch."""
    answers = [each["content"] for each in body["messages"] if each["role"] == "tool"]
    for text in reversed(answers):
        try:
            read = json.loads(text)
        except ValueError:
            continue
        if isinstance(read, dict) and "results" in read:
            return str(read["results"][0]["candidates"][0]["id"])
    msg = "no search has answered"
    raise ToolcellError(msg)


def _call(name: str, arguments: Mapping[str, Any], number: int = 1) -> ToolCall:
    return ToolCall(f"call_{number}", name, json.dumps(arguments))


def _described(body: Mapping[str, Any]) -> list[ToolCall]:
    return [_call("tool_describe", {"id": _structured_id(body)}, 2)]


def _called(body: Mapping[str, Any]) -> list[ToolCall]:
    return [_call("tool_call", {"id": _structured_id(body), "args": TICKET}, 3)]


_STRUCTURED: Final = ("tool_search", "tool_describe", "tool_call")
_TWO: Final = {"queries": [{"query": _SEARCH, "limit": 3}, {"query": "audit a sensor", "limit": 3}]}
_DIRECT: Final = [_call(WANTED, TICKET)]


def _code_mode(executor: str) -> Lane:
    return Lane(
        name=f"code-mode/{executor}",
        tools={"codeMode": {"enabled": True, "executor": executor}},
        steps=([_call("exec", {"code": _CELL})], ANSWER),
        shown=("exec", "wait", DIRECT_ONLY),
        through="exec",
    )


DIRECT: Final = Lane(name="direct", tools={}, steps=(_DIRECT, ANSWER))
LANES: Final = (
    DIRECT,
    Lane(
        name="code",
        tools={"toolSearch": True},
        steps=([_call("tool_search_code", {"code": _CODE})], ANSWER),
        shown=("tool_search_code", DIRECT_ONLY),
        through="tool_search_code",
        searches=1,
        describes=1,
    ),
    Lane(
        name="tools",
        tools={"toolSearch": {"mode": "tools"}},
        steps=([_call("tool_search", _TWO)], _described, _called, ANSWER),
        shown=(*_STRUCTURED, DIRECT_ONLY),
        through="tool_call",
        searches=2,
        describes=1,
    ),
    Lane(
        name="directory",
        tools={"toolSearch": {"mode": "directory"}},
        steps=([_call("tool_search", _TWO)], _DIRECT, ANSWER),
        searches=2,
        describes=0,
        shown=(*_STRUCTURED, DIRECT_ONLY),
    ),
    _code_mode("quickjs"),
    _code_mode("node"),
)
