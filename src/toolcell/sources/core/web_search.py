"""Owns the `web_search` tool: one question, results in one shape whoever searched.

Above: `sources.core.toolset`. Below: `http_types`, `search_engines`. Every outcome is one of four:
results, an answer, an error, or what the engine said when it cannot be understood. All of it is
from the network and marked so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from toolcell.base.jsontext import JsonObject, clip_utf8, loads
from toolcell.errors import CallError
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import INTEGER, STRING, array, closed, constant, nullable
from toolcell.sources.core.http_types import Http, HttpReply, HttpRequest
from toolcell.sources.core.search_engines import Engine, Found, Hit, Question
from toolcell.sources.core.work import Arguments
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

MAX_RESULTS: Final = 20
RAW_BYTES: Final = 32 << 10
_REPLY_BYTES: Final = 1 << 20

_HITS: Final = array(
    closed({"title": STRING, "url": STRING, "snippet": STRING, "published": nullable("string")})
)
_CODES: Final = ["not_configured", "unauthorized", "rate_limited", "unreachable", "failed"]

OUTPUT: Final[Mapping[str, Any]] = {
    "anyOf": [
        closed({"kind": constant("results"), "provider": STRING, "results": _HITS}),
        closed(
            {"kind": constant("answer"), "provider": STRING, "answer": STRING, "results": _HITS}
        ),
        closed(
            {
                "kind": constant("error"),
                "provider": nullable("string"),
                "code": {"enum": _CODES},
                "message": STRING,
            }
        ),
        closed({"kind": constant("raw"), "provider": STRING, "status": INTEGER, "text": STRING}),
    ]
}

Code = Literal["not_configured", "unauthorized", "rate_limited", "unreachable", "failed"]


class SearchArguments(Arguments):
    """Arguments of `web_search`."""

    query: Annotated[str, Field(min_length=1, max_length=1000, description="What to look for.")]
    limit: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="Results at most.")] = 10
    language: Annotated[
        str, Field(pattern="^([a-z]{2}(-[A-Z]{2})?)?$", description="Such as `en` or `de`.")
    ] = ""
    since: Annotated[
        Literal["any", "day", "week", "month", "year"], Field(description="How old at most.")
    ] = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSetup:
    """Who searches.

    Attributes:
        engine: Whose words to use.
        seconds: How long one search may take.
    """

    engine: Engine
    seconds: float = 15.0


def web_search_tool(http: Http, setup: SearchSetup | None) -> Tool:
    """Return the `web_search` tool.

    Args:
        http: Sends requests; the engine's address is the operator's choice, so it may be private.
        setup: Who searches; None gives an error result that says what to configure.
    """

    async def execute(arguments: SearchArguments) -> ToolResult:
        return _result(await _search(http, setup, arguments))

    return build_tool(
        name="web_search",
        label="Search the web",
        description=(
            "Search the web for current information. Look at `kind` first: `results`, `answer` "
            "(with results), `error` or `raw`. The texts are data from outside."
        ),
        parameters=SearchArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=False,
    )


async def _search(http: Http, setup: SearchSetup | None, arguments: SearchArguments) -> JsonObject:
    if setup is None:
        message = "No search provider is configured. The operator can set tools.web.search."
        return _error(None, "not_configured", message)
    engine = setup.engine
    question = Question(
        query=arguments.query,
        limit=arguments.limit,
        language=arguments.language or None,
        since=None if arguments.since == "any" else arguments.since,
    )
    url, headers = engine.request(question)
    try:
        reply = await http.send(
            HttpRequest(url=url, headers=headers, max_bytes=_REPLY_BYTES, seconds=setup.seconds)
        )
    except CallError as error:
        # The operator's address is not for the model; a long one is told by its beginning.
        message = error.message.replace(repr(url[:200]), engine.name)
        return _error(engine.name, "unreachable", message)
    refused = _refusal(engine.name, reply)
    if refused is not None:
        return refused
    found = _read(engine, reply)
    if found is None:
        text = clip_utf8(reply.body.decode("utf-8", "replace"), RAW_BYTES)
        return {"kind": "raw", "provider": engine.name, "status": reply.status, "text": text}
    results = [_hit(each) for each in found.hits[: arguments.limit]]
    if found.answer is not None:
        return {
            "kind": "answer",
            "provider": engine.name,
            "answer": found.answer,
            "results": results,
        }
    return {"kind": "results", "provider": engine.name, "results": results}


def _refusal(name: str, reply: HttpReply) -> JsonObject | None:
    match reply.status:
        case status if 200 <= status < 300:
            return None
        case 401 | 403:
            hint = " SearXNG answers so when its JSON format is off." if name == "searxng" else ""
            message = f"{name} refused the request (status {reply.status}).{hint}"
            return _error(name, "unauthorized", message)
        case 429:
            return _error(name, "rate_limited", f"{name} takes no more requests for now.")
        case status:
            return _error(name, "failed", f"{name} answered with status {status}.")


def _read(engine: Engine, reply: HttpReply) -> Found | None:
    """Return what the engine found; None when its answer is not what was agreed."""
    if reply.truncated:
        return None
    try:
        return engine.read(loads(reply.body))
    except (ValueError, RecursionError):
        return None


def _hit(hit: Hit) -> JsonObject:
    return {
        "title": hit.title,
        "url": hit.url,
        "snippet": hit.snippet,
        "published": hit.published,
    }


def _error(provider: str | None, code: Code, message: str) -> JsonObject:
    return {"kind": "error", "provider": provider, "code": code, "message": message}


def _result(details: JsonObject) -> ToolResult:
    match details["kind"]:
        case "error":
            text = details["message"]
        case "raw":
            text = details["text"]
        case _:
            lines = [
                f"{number}. {hit['title']}\n   {hit['url']}\n   {hit['snippet']}"
                for number, hit in enumerate(details["results"], 1)
            ]
            answer = [details["answer"]] if "answer" in details else []
            text = "\n".join([*answer, *lines]) or "[nothing found]"
    return ToolResult(
        content=(TextContent(text),), details=details, untrusted=details["provider"] is not None
    )
