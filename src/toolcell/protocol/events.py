"""Owns the facts that happen in a run, one frozen value each.

Sessions, telemetry and progress read them; nobody keeps a second record.

Above: everything that reports or stores. Below: `protocol.scope`, `base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolcell.protocol.messages import Message, Usage
from toolcell.protocol.scope import RunScope


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run begins. `sender` and `channel` say whom it acts for, as its scope does."""

    scope: RunScope
    at: float
    model: str | None = None
    sender: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """A run ends; `error` says why when it did not complete.

    `continued_by` is the run that goes on with a turn which was cut off with its process.
    """

    scope: RunScope
    at: float
    status: Literal["completed", "failed", "aborted"]
    error: str | None = None
    continued_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    """A message joined the conversation."""

    scope: RunScope
    at: float
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """One model call is over.

    Attributes:
        tool_names: The tools it was shown, in order.
        provider: Its provider's id in config, where known.
        purpose: `summary` when it was for compaction; None for a turn of the agent.
    """

    scope: RunScope
    at: float
    model: str
    tool_names: tuple[str, ...]
    request_bytes: int
    duration_ms: float
    usage: Usage
    provider: str | None = None
    purpose: Literal["summary"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A summary stands for the older messages of a conversation from now on; none is deleted.

    Attributes:
        model: Who wrote the summary.
        trigger: `window`: the next request would not have fitted; `refused`: the endpoint said so;
            `manual`: somebody asked for it.
        summary: What the messages came to, and what an earlier summary said.
        messages: How many messages it took the place of, this time.
        tokens_before: About how many tokens a request had; `tokens_after` likewise.
        through: The last place of the session's record that was read before. Every message up to
            there is covered, but those at the places `kept`. None: the conversation is not the
            session's own, and its next run does not begin with the summary.
        own: How many messages of this run itself are covered, but those in `kept_own`.
    """

    scope: RunScope
    at: float
    model: str
    trigger: Literal["window", "refused", "manual"]
    summary: str
    messages: int
    tokens_before: int
    tokens_after: int
    through: int | None
    own: int
    kept: tuple[int, ...]
    kept_own: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool call was admitted and begins.

    Attributes:
        call_id: This call. Unique in the run.
        parent_id: The call whose cell made this one; None for a call of the model's own.
        tool_id: Exact catalog id, such as `openclaw:core:read`.
        tool_name: The tool's own name.
        source: `openclaw`, `mcp` or `client`.
        arguments: Plain JSON, as the tool gets it.
        started: Its number in dispatch order within the run, from 1.
    """

    scope: RunScope
    at: float
    call_id: str
    parent_id: str | None
    tool_id: str
    tool_name: str
    source: str
    arguments: Any
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUpdated:
    """A running tool reported progress."""

    scope: RunScope
    at: float
    call_id: str
    parent_id: str | None
    update: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A tool call is over; exactly one for each `CallStarted`.

    `result` is what the caller got as plain JSON; `error` is the text when it failed.
    """

    scope: RunScope
    at: float
    call_id: str
    parent_id: str | None
    tool_id: str
    tool_name: str
    status: Literal["completed", "failed", "blocked", "aborted"]
    duration_ms: float
    result: Any = None
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A call waits for a person."""

    scope: RunScope
    at: float
    approval_id: str
    call_id: str
    tool_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered:
    """An approval was answered, or closed because nobody answered."""

    scope: RunScope
    at: float
    approval_id: str
    call_id: str
    approved: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStarted:
    """A code cell begins; `call_id` is the `exec` call."""

    scope: RunScope
    at: float
    call_id: str
    cell_id: str
    executor: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellParked:
    """A code cell was suspended and can be resumed."""

    scope: RunScope
    at: float
    call_id: str
    cell_id: str
    reason: Literal["pending_tools", "yield"]
    bytes_at_rest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEnded:
    """A code cell is over for good."""

    scope: RunScope
    at: float
    call_id: str
    cell_id: str
    status: Literal["completed", "failed"]
    code: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStepped:
    """One step of a code cell, as the guest and the host saw it: what replaying it needs.

    Attributes:
        number: From 1.
        start: JSON text of the values of this run the program began with; in its first step.
        image: The `key` of the `ContentKept` that it began with; in its first step.
        answers: What it was handed, in order: `{id, value}` or `{id, error}`, JSON text each.
        requests: What it asked, in order: `{id, method, args}`, `args` JSON text.
        withdrawn: Ids of requests it gave up.
        output: What it emitted, in order: `{type, text}`.
        end: `{value}` (JSON text), or `{fault, name, message}`; None when it waits.
    """

    scope: RunScope
    at: float
    call_id: str
    cell_id: str
    number: int
    start: str | None = None
    image: str | None = None
    answers: tuple[Mapping[str, Any], ...] = ()
    requests: tuple[Mapping[str, Any], ...] = ()
    withdrawn: tuple[int, ...] = ()
    output: tuple[Mapping[str, Any], ...] = ()
    end: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentKept:
    """Something large that many runs share; stores keep the text of a `key` once.

    Attributes:
        kind: `image` (what cells begin with), `tools` (what a model was shown), `system` (its
            system prompt).
        key: A hash of the text.
        text: JSON text, or the prompt itself.
    """

    scope: RunScope
    at: float
    kind: Literal["image", "tools", "system"]
    key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogUsed:
    """A Tool Search control is over: how the run's catalog has been used by then (rule 10.7).

    Attributes:
        call_id: The control's call.
        mode: `code`, `tools` or `directory`.
        catalog_size: Hidden tools.
        sources: How many of them each source has.
        searches: Searches of the run so far; `describes` and `calls` likewise.
        visible_tools: Names of the tools the model sees, in order.
    """

    scope: RunScope
    at: float
    call_id: str
    mode: str
    catalog_size: int
    sources: Mapping[str, int]
    searches: int
    describes: int
    calls: int
    visible_tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildChanged:
    """A child agent of a run was queued, began or ended (rule 11).

    Attributes:
        scope: The run that asked for it.
        group_id: `swarm:<session key>:<run id>` of that run.
        child_run_id: The child's own run; `child_session_id` is its session.
        state: Where it is now; the last three are ends.
        error: Why it did not complete.
        gives: What it is to come to: its last words, an object of a schema, or another value.
    """

    scope: RunScope
    at: float
    group_id: str
    child_run_id: str
    child_session_id: str
    child_agent_id: str
    state: Literal["queued", "running", "completed", "failed", "cancelled"]
    label: str | None = None
    phase: str | None = None
    error: str | None = None
    gives: Literal["text", "object", "value"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmNote:
    """A program told how its work goes: `phase(title)`, `log(message)`, or an `agents.run`.

    Attributes:
        scope: The run; its session key is part of it.
        reason: Always `swarm-note` (BEHAVIOURS 380).
        kind: `run` precedes the child's own events.
    """

    scope: RunScope
    at: float
    group_id: str
    kind: Literal["phase", "log", "run"]
    text: str
    reason: Literal["swarm-note"] = "swarm-note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """Something an operator should know: a renamed tool, a broken schema, a server that is down."""

    at: float
    level: Literal["info", "warning", "error"]
    subject: str
    message: str
    scope: RunScope | None = None


Event: TypeAlias = (
    RunStarted
    | RunEnded
    | MessageAdded
    | ModelCalled
    | Compacted
    | CallStarted
    | CallUpdated
    | CallEnded
    | ApprovalRequested
    | ApprovalAnswered
    | CellStarted
    | CellParked
    | CellEnded
    | CellStepped
    | ContentKept
    | CatalogUsed
    | ChildChanged
    | SwarmNote
    | Diagnostic
)
