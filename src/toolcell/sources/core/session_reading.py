"""Owns `sessions_list`, `sessions_history`, `sessions_search` and `session_status`.

Above: `sources.core.toolset`. Below: `sessions.contract`. An agent sees its own sessions, a
sandboxed one only the session it is in; others are told apart from none by nothing.
What was said may hold text from outside, so messages are marked untrusted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import Field

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.jsontext import JsonObject, dumps
from toolcell.plugin_sdk.builder import build_tool
from toolcell.protocol.messages import Message
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions
from toolcell.sessions.listing import SessionInfo
from toolcell.sessions.search import Found, Wanted
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, array, closed, nullable
from toolcell.sources.core.work import Absent, Arguments, Natural, refused
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

MAX_LISTED: Final = 1000
"""Sessions that are looked at, the last used first."""

SEARCH_SECONDS: Final = 10.0
TEXT_CHARS: Final = 8000
SNIPPET_CHARS: Final = 300

NUMBER: Final[JsonObject] = {"type": "number"}
ROLE: Final[JsonObject] = {"enum": ["system", "user", "assistant", "tool"]}

LIST_OUTPUT: Final = closed(
    {
        "sessions": array(
            closed(
                {
                    "sessionId": STRING,
                    "createdAt": NUMBER,
                    "updatedAt": NUMBER,
                    "messages": INTEGER,
                    "runs": INTEGER,
                    "current": BOOLEAN,
                }
            )
        ),
        "truncated": BOOLEAN,
    }
)
HISTORY_OUTPUT: Final = closed(
    {
        "sessionId": STRING,
        "messages": array(
            closed(
                {
                    "index": INTEGER,
                    "role": ROLE,
                    "text": STRING,
                    "cut": BOOLEAN,
                    "toolCalls": array(STRING),
                }
            )
        ),
        "total": INTEGER,
        "before": nullable("integer"),
    }
)
SEARCH_OUTPUT: Final = closed(
    {
        "hits": array(
            closed({"sessionId": STRING, "index": INTEGER, "role": ROLE, "snippet": STRING})
        ),
        "sessionsSearched": INTEGER,
        "truncated": BOOLEAN,
    }
)
STATUS_OUTPUT: Final = closed(
    {
        "sessionId": STRING,
        "agentId": STRING,
        "current": BOOLEAN,
        "runId": nullable("string"),
        "channel": nullable("string"),
        "sandboxed": BOOLEAN,
        "createdAt": nullable("number"),
        "updatedAt": nullable("number"),
        "messages": INTEGER,
        "runs": INTEGER,
    }
)

SessionId: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]


class ListArguments(Arguments):
    """Arguments of `sessions_list`."""

    limit: Annotated[int, Field(ge=1, le=200, description="Sessions at most.")] = 50


class HistoryArguments(Arguments):
    """Arguments of `sessions_history`."""

    session_id: Annotated[SessionId | Absent, Field(description="Default: this session.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Messages at most, the last ones.")] = 50
    before: Annotated[
        Natural | Absent, Field(description="Go on further back: `before` of the last result.")
    ] = None


class SearchArguments(Arguments):
    """Arguments of `sessions_search`."""

    query: Annotated[str, Field(min_length=1, max_length=500, description="Words, all needed.")]
    limit: Annotated[int, Field(ge=1, le=100, description="Hits at most.")] = 20


class StatusArguments(Arguments):
    """Arguments of `session_status`."""

    session_id: Annotated[SessionId | Absent, Field(description="Default: this session.")] = None


A = TypeVar("A", bound=Arguments)


def session_tools(sessions: Sessions, *, clock: Clock = SYSTEM_CLOCK) -> list[Tool]:
    """Return the tools that read sessions. All of them are replay-safe."""
    view = SessionView(sessions, clock)
    return [
        _tool("sessions_list", ListArguments, LIST_OUTPUT, view.listed, _LIST, "Sessions"),
        _tool(
            "sessions_history", HistoryArguments, HISTORY_OUTPUT, view.history, _HISTORY, "History"
        ),
        _tool("sessions_search", SearchArguments, SEARCH_OUTPUT, view.search, _SEARCH, "Search"),
        _tool("session_status", StatusArguments, STATUS_OUTPUT, view.status, _STATUS, "Status"),
    ]


_LIST: Final = "List the sessions of this agent, the last used first. Times are Unix seconds."
_HISTORY: Final = (
    "Read what was said in a session of this agent: the last messages, oldest first. When `before` "
    "is not null there are earlier ones."
)
_SEARCH: Final = "Find messages that hold all words of the query, in the sessions of this agent."
_STATUS: Final = "Tell how a session stands: whose it is, how long, and the run that goes on here."


def _tool(
    name: str,
    parameters: type[A],
    output: JsonObject,
    work: Callable[[A, RunScope], Awaitable[ToolResult]],
    description: str,
    label: str,
) -> Tool:
    async def execute(arguments: A, context: ToolContext) -> ToolResult:
        return await work(arguments, context.scope)

    return build_tool(
        name=name,
        label=label,
        description=description,
        parameters=parameters,
        output_schema=output,
        execute=execute,
        replay_safe=True,
    )


class SessionView:
    """Sessions as one run may see them."""

    def __init__(self, sessions: Sessions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._sessions = sessions
        self._clock = clock

    async def listed(self, arguments: ListArguments, scope: RunScope) -> ToolResult:
        """List sessions."""
        found, more = await self._visible(scope)
        shown = [_listed(each, scope) for each in found[: arguments.limit]]
        details = {"sessions": shown, "truncated": more or len(found) > len(shown)}
        return _told(details)

    async def history(self, arguments: HistoryArguments, scope: RunScope) -> ToolResult:
        """Show messages."""
        session = arguments.session_id or scope.session_id
        await self.check(session, scope)
        messages = await self._sessions.history(session)
        end = len(messages) if arguments.before is None else min(arguments.before, len(messages))
        start = max(0, end - arguments.limit)
        shown = [_said(index, messages[index]) for index in range(start, end)]
        details = {
            "sessionId": session,
            "messages": shown,
            "total": len(messages),
            "before": start or None,
        }
        return _told(details, untrusted=True)

    async def search(self, arguments: SearchArguments, scope: RunScope) -> ToolResult:
        """Find messages, the last first; what was found in time is returned."""
        words = arguments.query.casefold().split()
        if not words:
            raise refused("query holds no words.")
        ends_at = self._clock.monotonic() + SEARCH_SECONDS
        found = await self._holding(words, scope, arguments.limit + 1, ends_at)
        hits: list[JsonObject] = []
        cut = not found.complete
        for session_id in found.session_ids:
            if len(hits) > arguments.limit or self._clock.monotonic() > ends_at:
                cut = True
                break
            messages = await self._sessions.history(session_id)
            hits += _hits(session_id, messages, words, arguments.limit + 1 - len(hits))
        details = {
            "hits": hits[: arguments.limit],
            "sessionsSearched": found.searched,
            "truncated": cut or len(hits) > arguments.limit,
        }
        return _told(details, untrusted=True)

    async def _holding(
        self, words: Sequence[str], scope: RunScope, limit: int, ends_at: float
    ) -> Found:
        """Return sessions that a run may see and that may hold the words."""
        if scope.sandboxed:
            own, _ = await self._visible(scope)
            return Found([each.session_id for each in own], len(own), complete=True)
        return await self._sessions.search(
            Wanted(
                words=words,
                agent_id=scope.agent_id,
                limit=limit,
                time_is_up=lambda: self._clock.monotonic() > ends_at,
                indexed_enough=lambda: self._clock.monotonic() > ends_at - SEARCH_SECONDS / 2,
            )
        )

    async def status(self, arguments: StatusArguments, scope: RunScope) -> ToolResult:
        """Tell how a session stands."""
        session = arguments.session_id or scope.session_id
        info = await self.check(session, scope)
        current = session == scope.session_id
        details = {
            "sessionId": session,
            "agentId": scope.agent_id,
            "current": current,
            "runId": scope.run_id if current else None,
            "channel": scope.channel if current else None,
            "sandboxed": scope.sandboxed,
            "createdAt": None if info is None else info.created_at,
            "updatedAt": None if info is None else info.updated_at,
            "messages": 0 if info is None else info.messages,
            "runs": 0 if info is None else info.runs,
        }
        return _told(details)

    async def check(self, session_id: str, scope: RunScope) -> SessionInfo | None:
        """Return what is known of a session; None for the run's own that is not on record yet.

        Raises:
            CallError: there is none, or it is not for this run to see.
        """
        own = session_id == scope.session_id
        if own or not scope.sandboxed:
            info = await self._sessions.info(session_id)
            if own or (info is not None and info.agent_id == scope.agent_id):
                return info
        message = f"There is no session {session_id[:80]!r}; sessions_list shows what there is."
        raise refused(message)

    async def _visible(self, scope: RunScope) -> tuple[Sequence[SessionInfo], bool]:
        """Return the sessions a run may see, and whether there may be more."""
        if scope.sandboxed:
            info = await self._sessions.info(scope.session_id)
            return ([] if info is None else [info]), False
        known = await self._sessions.list_sessions(limit=MAX_LISTED)
        own = [each for each in known if each.agent_id == scope.agent_id]
        return own, len(known) == MAX_LISTED


def _listed(info: SessionInfo, scope: RunScope) -> JsonObject:
    return {
        "sessionId": info.session_id,
        "createdAt": info.created_at,
        "updatedAt": info.updated_at,
        "messages": info.messages,
        "runs": info.runs,
        "current": info.session_id == scope.session_id,
    }


def _said(index: int, message: Message) -> JsonObject:
    text = message.words
    return {
        "index": index,
        "role": message.role,
        "text": text[:TEXT_CHARS],
        "cut": len(text) > TEXT_CHARS,
        "toolCalls": [each.name for each in message.tool_calls],
    }


def _hits(
    session: str, messages: Sequence[Message], words: Sequence[str], room: int
) -> list[JsonObject]:
    hits: list[JsonObject] = []
    for index in range(len(messages) - 1, -1, -1):
        if len(hits) >= room:
            break
        folded = messages[index].text.casefold()
        if all(word in folded for word in words):
            at = max(0, folded.find(words[0]) - SNIPPET_CHARS // 3)
            snippet = messages[index].text[at : at + SNIPPET_CHARS]
            role = messages[index].role
            hits.append({"sessionId": session, "index": index, "role": role, "snippet": snippet})
    return hits


def _told(details: dict[str, Any], *, untrusted: bool = False) -> ToolResult:
    return ToolResult(content=(TextContent(dumps(details)),), details=details, untrusted=untrusted)
