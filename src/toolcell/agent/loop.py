"""Owns the agent loop: prepare, turn, act, until the model calls nothing more.

Or until all it called say that the turn is over (BEHAVIOURS 333).

A small state machine and nothing else: what a model sees is the plan's business, how a call is
guarded the gate's, what is kept the sink's.

Above: `app`, the library face, the CLI. Below: the ports of `contract`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

import anyio

from toolcell.agent.compacting import Compactor, Model
from toolcell.agent.contract import AgentPorts, RunLimits, RunRequest, RunResult
from toolcell.agent.conversation import with_own_ids
from toolcell.agent.dispatch import Dispatch
from toolcell.agent.seeing import seen
from toolcell.agent.showing import Shown
from toolcell.agent.states import Act, Done, Prepare, State, Turn
from toolcell.agent.summary import in_prompt
from toolcell.agent.talk import Talk
from toolcell.agent.token_estimate import text_tokens, tool_tokens
from toolcell.errors import ProviderError, ToolcellError
from toolcell.protocol.events import Diagnostic, MessageAdded, ModelCalled, RunEnded, RunStarted
from toolcell.protocol.messages import Message, ModelRequest, ToolCall, Usage
from toolcell.surface.enforcement import check_payload
from toolcell.surface.plan import SurfacePlan

REFUSED_AS_IT_IS: Final = frozenset({400, 413, 422})
"""Answers that say the request itself is wrong; an image in it may be what is."""
TOO_LARGE: Final = 413
"""What is said of bytes as well as of tokens: images come first."""


async def run_agent(
    request: RunRequest,
    ports: AgentPorts,
    *,
    limits: RunLimits | None = None,
    on_text: Callable[[str], None] | None = None,
) -> RunResult:
    """Run an agent until it answers, fails or is cancelled.

    Cancelling it cancels the model call or the tools that run; the record then says `aborted`, and
    every call that was asked for has an answer, so that the session can go on.

    Args:
        request: What is asked.
        ports: What the run works with.
        limits: Its bounds.
        on_text: Gets the model's words as they arrive.

    Returns:
        The outcome; `failed` with an error for whatever toolcell raises on purpose.
    """
    return await AgentRun(request, ports, limits or RunLimits(), on_text).run()


class AgentRun:
    """One run. Use it once."""

    def __init__(
        self,
        request: RunRequest,
        ports: AgentPorts,
        limits: RunLimits,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self._request = request
        self._ports = ports
        self._limits = limits
        self._on_text = on_text
        self._talk = Talk(request.so_far)
        self._compactor = Compactor(
            self._talk, request.compaction, request.scope, ports.sink, ports.clock
        )
        self._call_ids = {call.id for message in self._talk.sent for call in message.tool_calls}
        self._turns = 0
        self._usage = Usage()
        self._heard = False
        self._fixed = 0
        self._sized: object = None
        self._tools_size = 0
        self._images_refused = False
        self._shown = Shown(ports.sink, ports.clock, request.scope)

    async def run(self) -> RunResult:
        """Run it to its end."""
        scope, clock = self._request.scope, self._ports.clock
        started = RunStarted(
            scope=scope,
            at=clock.wall(),
            model=self._request.model,
            sender=scope.sender,
            channel=scope.channel,
        )
        self._ports.sink.emit(started)
        try:
            if self._request.prompt is not None:
                said, images = self._request.prompt, self._request.images
                self._add(Message(role="user", text=said, images=images))
            result = await self._drive()
        except ToolcellError as error:
            self._end("failed", error.message)
            return self._result("failed", error=error)
        except anyio.get_cancelled_exc_class():
            self._end("aborted", "the run was cancelled")
            raise
        except Exception as error:
            self._end("failed", f"{type(error).__name__}: {error}")
            raise
        self._end("completed", None)
        return result

    async def _drive(self) -> RunResult:
        state: State = Prepare()
        while True:
            match state:
                case Prepare():
                    state = await self._prepare()
                case Turn(plan, request):
                    state = await self._turn(plan, request)
                case Act(plan, calls):
                    state = await self._act(plan, calls)
                case Done(finish):
                    return replace(self._result("completed"), finish=finish)

    async def _prepare(self) -> Turn:
        if self._turns >= self._limits.max_turns:
            message = (
                f"the run made {self._turns} model calls and is not done; "
                "raise maxTurns of the agent, or ask for less at a time"
            )
            raise ToolcellError(message, code="turn_limit")
        plan = await self._ports.plan()
        own = "\n\n".join(filter(None, (self._request.system, plan.prompt)))
        self._fixed = text_tokens(own) + self._tool_tokens(plan)
        await self._compactor.before_call(self._model(), self._fixed)
        summary = self._talk.summary
        told = in_prompt(summary) if summary is not None else None
        prompt = "\n\n".join(filter(None, (own, told))) or None
        self._shown.tell(prompt, plan.definitions)
        system = (Message(role="system", text=prompt),) if prompt else ()
        talk = seen(self._talk.sent, unseen=self._unseen())
        request = ModelRequest(
            model=self._request.model,
            messages=(*system, *talk),
            tools=plan.definitions,
            options=self._request.options,
        )
        return Turn(plan, request)

    async def _turn(self, plan: SurfacePlan, request: ModelRequest) -> State:
        clock = self._ports.clock
        began = clock.monotonic()
        self._heard = False
        try:
            reply = await self._ports.provider.complete(
                request,
                check_payload=check_payload(plan) if plan.mode == "code" else None,
                on_text=None if self._on_text is None else self._told,
            )
        except ProviderError as error:
            return await self._elsewhere(error, request)
        self._turns += 1
        self._usage += reply.usage
        self._compactor.answered(self._model(), self._fixed, reply.usage)
        called = ModelCalled(
            scope=self._request.scope,
            at=clock.wall(),
            model=request.model,
            tool_names=tuple(tool.name for tool in request.tools),
            request_bytes=reply.request_bytes,
            duration_ms=(clock.monotonic() - began) * 1000,
            usage=reply.usage,
            provider=self._request.provider_id,
        )
        self._ports.sink.emit(called)
        calls = with_own_ids(reply.message.tool_calls, self._call_ids)
        self._add(replace(reply.message, tool_calls=calls))
        return Act(plan, calls) if calls else Done(reply.finish)

    def _told(self, piece: str) -> None:
        self._heard = True
        if self._on_text is not None:
            self._on_text(piece)

    async def _elsewhere(self, error: ProviderError, request: ModelRequest) -> Prepare:
        """Go on with less, or another model; never when words of this one were passed on."""
        if self._heard:
            raise error
        pictures = any(message.images for message in request.messages)
        if (
            error.too_long
            and not (pictures and error.status == TOO_LARGE)
            and await self._compactor.after_refusal(self._model(), self._fixed)
        ):
            return Prepare()
        if (route := self._ports.fallback(error)) is not None:
            self._ports, self._request = route.taken(self._ports, self._request)
            self._images_refused = False
        elif error.status in REFUSED_AS_IT_IS and pictures:
            self._give_up_images(error)
        else:
            raise error
        return Prepare()

    def _give_up_images(self, error: ProviderError) -> None:
        """Ask once more without images: one that is refused would end every later run, too."""
        self._images_refused = True
        at, scope = self._ports.clock.wall(), self._request.scope
        message = f"asking {self._request.model} again without images: {error.message}"
        told = Diagnostic(at=at, level="warning", subject="model", message=message, scope=scope)
        self._ports.sink.emit(told)

    def _model(self) -> Model:
        request = self._request
        return Model(
            provider=self._ports.provider,
            name=request.model,
            options=request.options,
            provider_id=request.provider_id,
            window=request.context_window,
            images=request.takes_images and not self._images_refused,
        )

    def _tool_tokens(self, plan: SurfacePlan) -> int:
        """Tools are the same from call to call, as a rule."""
        if self._sized is not plan.visible:
            self._sized, self._tools_size = plan.visible, tool_tokens(plan.definitions)
        return self._tools_size

    def _unseen(self) -> str:
        if self._images_refused:
            return "the endpoint refused a request with images"
        return "" if self._request.takes_images else f"{self._request.model} does not take images"

    async def _act(self, plan: SurfacePlan, calls: tuple[ToolCall, ...]) -> Prepare | Done:
        dispatch = Dispatch(calls, plan, self._ports.call_tool, self._limits)
        try:
            await dispatch.run()
        finally:
            for message in dispatch.answers:
                self._add(message)
        return Done("stop") if dispatch.over else Prepare()

    def _add(self, message: Message) -> None:
        self._talk.add(message)
        at = self._ports.clock.wall()
        self._ports.sink.emit(MessageAdded(scope=self._request.scope, at=at, message=message))

    def _end(self, status: Literal["completed", "failed", "aborted"], error: str | None) -> None:
        at = self._ports.clock.wall()
        ended = RunEnded(scope=self._request.scope, at=at, status=status, error=error)
        self._ports.sink.emit(ended)

    def _result(
        self, status: Literal["completed", "failed"], error: ToolcellError | None = None
    ) -> RunResult:
        said = [m.text for m in self._talk.added if m.role == "assistant" and m.text]
        return RunResult(
            status=status,
            text=said[-1] if said else "",
            messages=tuple(self._talk.added),
            turns=self._turns,
            usage=self._usage + self._compactor.usage,
            error=error,
        )
