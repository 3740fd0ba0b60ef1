"""Owns what a run of an agent is given and gives back.

Above: `app`, the library face, the CLI. Below: `protocol`, `providers.contract`, `surface.plan`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.config.compaction import CompactionOptions
from toolcell.errors import ProviderError, ToolcellError
from toolcell.protocol.conversation import Conversation
from toolcell.protocol.messages import ImagePart, Message, Usage
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import NullSink, Sink
from toolcell.providers.contract import Provider
from toolcell.surface.plan import SurfacePlan, VisibleTool
from toolcell.tools.content import ToolResult

PlanSurface: TypeAlias = Callable[[], Awaitable[SurfacePlan]]
"""Asked before each model call, so that tools may come and go between them."""

Finish: TypeAlias = Literal["stop", "tool_calls", "length", "filtered", "other"]
"""Why a model stopped; `stop` as well where the tools it called ended the turn."""

CallTool: TypeAlias = Callable[[VisibleTool, Mapping[str, Any], str], Awaitable[ToolResult]]
"""Runs one call through the gate: the tool, its arguments, the call's id. Raises CallError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Another model to go on with, and what comes with it.

    Attributes:
        provider: Its wire.
        model: The provider's own name of it.
        plan: Which tools it is shown: a model may have code mode when another has not.
        call_tool: The way to the gate.
        provider_id: The provider's id in config, for the record.
        options: Further keys of the model request.
        takes_images: Whether the model sees images; else it reads a note in their place.
        context_window: Tokens it takes; None when nobody said.
    """

    provider: Provider
    model: str
    plan: PlanSurface
    call_tool: CallTool
    provider_id: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    takes_images: bool = False
    context_window: int | None = None

    def taken(self, ports: AgentPorts, request: RunRequest) -> tuple[AgentPorts, RunRequest]:
        """Return the ports and the request of a run that goes on this way."""
        return (
            replace(ports, provider=self.provider, plan=self.plan, call_tool=self.call_tool),
            replace(
                request,
                model=self.model,
                options=self.options,
                provider_id=self.provider_id,
                takes_images=self.takes_images,
                context_window=self.context_window,
            ),
        )


Fallback: TypeAlias = Callable[[ProviderError], Route | None]
"""Asked when a model call failed: where to go on, or None to let the run fail."""


def no_fallback(_error: ProviderError) -> Route | None:
    """Let the run fail."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPorts:
    """What a run works with.

    Attributes:
        provider: The model's wire.
        plan: Which tools the next model call shows.
        call_tool: The way to the gate.
        sink: Takes the events.
        clock: For durations and timestamps.
        fallback: Where to go on when the provider cannot answer.
    """

    provider: Provider
    plan: PlanSurface
    call_tool: CallTool
    fallback: Fallback = no_fallback
    sink: Sink = field(default_factory=NullSink)
    clock: Clock = SYSTEM_CLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is asked of a run.

    Attributes:
        scope: Whom it acts for.
        model: The provider's own name of the model.
        prompt: What the user says; None goes on from the history as it stands.
        history: The conversation so far, without a system message, where it is not `past`.
        system: The configured system prompt; sent first, never recorded.
        options: Further keys of the model request, such as `temperature`.
        provider_id: The provider's id in config, for the record.
        images: What the user shows with the prompt.
        takes_images: Whether the model sees images; else it reads a note in their place.
        past: The conversation so far as the session's record has it.
        context_window: Tokens the model takes; None when nobody said.
        compaction: When and how a long conversation is shortened.
    """

    scope: RunScope
    model: str
    prompt: str | None
    history: tuple[Message, ...] = ()
    system: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    provider_id: str | None = None
    images: tuple[ImagePart, ...] = ()
    takes_images: bool = False
    past: Conversation | None = None
    context_window: int | None = None
    compaction: CompactionOptions = field(default_factory=CompactionOptions)

    @property
    def so_far(self) -> Conversation:
        """The conversation before the prompt."""
        if self.past is not None:
            return self.past
        return Conversation(messages=self.history, through=None if self.history else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Bounds of one run.

    Attributes:
        max_turns: Model calls; those that summarise are not counted.
        max_result_bytes: UTF-8 bytes of one tool result the model is shown. Results of code mode's
            own controls have a cap of their own and are never cut here.
    """

    max_turns: int = 50
    max_result_bytes: int = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run came to.

    Attributes:
        status: `failed` when the provider, enforcement or a limit ended it; `error` says why.
        text: The model's last words; where tools ended the turn, those it said before, or none.
        messages: What the run added to the conversation, the prompt first.
        turns: Model calls made, those for summaries apart.
        usage: Tokens of all of them, and of the summaries.
        finish: Why the model stopped; `length` means that its answer is cut.
    """

    status: Literal["completed", "failed"]
    text: str
    messages: tuple[Message, ...]
    turns: int
    usage: Usage
    finish: Finish | None = None
    error: ToolcellError | None = None
