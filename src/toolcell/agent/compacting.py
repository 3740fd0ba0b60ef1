"""Owns compaction: when a conversation is too long, a summary takes the place of its older part.

A model is asked once more, without tools, and nobody hears that answer. When it fails nothing has
changed. It is tried before a call that would not fit, and once after the endpoint said that a call
did not; a run cannot go round in circles.

Above: the loop, `app.compacting`. Below: `compaction`, `summary`, `talk`, the provider's port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolcell.agent.compaction import Room, kept
from toolcell.agent.summary import cleaned, in_prompt, summary_request
from toolcell.agent.talk import Talk
from toolcell.agent.token_estimate import text_tokens
from toolcell.base.clock import Clock
from toolcell.config.compaction import CompactionOptions
from toolcell.errors import ProviderError
from toolcell.protocol.events import Compacted, Diagnostic, ModelCalled
from toolcell.protocol.messages import Message, ModelReply, ModelRequest, Usage
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink
from toolcell.providers.contract import Provider

Trigger = Literal["window", "refused", "manual"]

SUMMARY_TOKENS: Final = 2000
"""What a summary is expected to have, a quarter of all at most."""
MIN_GAIN: Final = 10
"""A compaction before a call frees at least one part in so many: each costs a model call."""
_TRIES: Final = 3
"""Of one summary, each with a quarter of the text: how much is too long may not be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model of the next call: who writes the summary, and what fits into it.

    Attributes:
        provider: Its wire.
        name: The provider's own name of it.
        options: Further keys of its requests.
        provider_id: The provider's id in config, for the record.
        window: Tokens of its context window; None when nobody said.
        images: Whether it is sent images.
    """

    provider: Provider
    name: str
    options: Mapping[str, Any]
    provider_id: str | None = None
    window: int | None = None
    images: bool = False


class Compactor:
    """Keeps one run's conversation short enough.

    Attributes:
        usage: Tokens of the summaries.
    """

    def __init__(
        self, talk: Talk, options: CompactionOptions, scope: RunScope, sink: Sink, clock: Clock
    ) -> None:
        self._talk = talk
        self._options = options
        self._scope = scope
        self._sink = sink
        self._clock = clock
        self._failed: str | None = None
        self._asked_again = False
        self.usage = Usage()

    async def before_call(self, model: Model, fixed: int) -> None:
        """Compact when the next call would not leave room for its answer.

        Where no summary can be had, the call is made as it is: the endpoint has the last word.

        Args:
            model: The model of the next call.
            fixed: About how many tokens its system prompt and tools have.
        """
        if not self._options.enabled or model.window is None or self._failed == model.name:
            return
        limit = self._limit(model.window)
        if self._size(model, fixed) <= limit:
            return
        try:
            await self._compact(model, fixed, "window", limit)
        except ProviderError as error:
            self._failed = model.name
            self._tell(f"the conversation could not be compacted: {error.message}")

    async def after_refusal(self, model: Model, fixed: int) -> bool:
        """Compact because the endpoint said that the call was too long; once for each call.

        Returns:
            Whether it is worth asking again.
        """
        if not self._options.enabled or self._asked_again:
            return False
        self._asked_again = True
        # Whatever the window is said to be, this did not fit.
        limit = self._size(model, fixed) // 2
        if model.window is not None:
            limit = min(limit, self._limit(model.window))
        try:
            return await self._compact(model, fixed, "refused", limit)
        except ProviderError as error:
            self._tell(f"the conversation could not be compacted: {error.message}")
            return False

    async def by_hand(self, model: Model) -> bool:
        """Compact whatever is older than the newest messages that are always kept.

        Returns:
            Whether there was anything older.

        Raises:
            ProviderError: no summary could be had; nothing has changed.
        """
        size = self._size(model, 0)
        limit = max(size, self._options.keep_recent_tokens * 2 + SUMMARY_TOKENS)
        if model.window is not None:
            limit = self._limit(model.window)
        return await self._compact(model, 0, "manual", limit)

    def answered(self, model: Model, fixed: int, usage: Usage) -> None:
        """A call was answered: how long it really was, and the next one may be compacted again."""
        self._asked_again = False
        self._talk.counted(self._size(model, fixed), usage.input_tokens)

    def _limit(self, window: int) -> int:
        return window - min(self._options.reserve_tokens, window // 2)

    def _size(self, model: Model, fixed: int) -> int:
        talk = self._talk
        summary = 0 if talk.summary is None else text_tokens(in_prompt(talk.summary))
        return talk.scaled(fixed + summary) + sum(talk.sizes(images=model.images))

    async def _compact(self, model: Model, fixed: int, trigger: Trigger, limit: int) -> bool:
        talk = self._talk
        before = self._size(model, fixed)
        sizes = talk.sizes(images=model.images)
        room = max(limit - talk.scaled(fixed) - min(SUMMARY_TOKENS, limit // 4), 0)
        keep = min(self._options.keep_recent_tokens, room // 2)
        messages = talk.recorded
        stays = kept(messages, sizes, Room(keep=keep, most=room), talk.origins())
        gone = sorted(set(range(len(messages))) - set(stays))
        gain = sum(sizes[index] for index in gone)
        if not gone or (trigger == "window" and gain * MIN_GAIN < limit):
            return False
        summary = await self._summary(model, [messages[index] for index in gone], limit)
        own = len(talk.added)
        talk.shorten(stays, summary)
        self._sink.emit(
            Compacted(
                scope=self._scope,
                at=self._clock.wall(),
                model=model.name,
                trigger=trigger,
                summary=summary,
                messages=len(gone),
                tokens_before=before,
                tokens_after=self._size(model, fixed),
                through=talk.through,
                own=own,
                kept=talk.kept_places(),
                kept_own=talk.kept_own(),
            )
        )
        return True

    async def _summary(self, model: Model, gone: Sequence[Message], limit: int) -> str:
        """Return the summary of messages and of the summary before.

        Raises:
            ProviderError: the model did not write one.
        """
        earlier = self._talk.summary
        room = int(limit / self._talk.ratio)
        for left in reversed(range(_TRIES)):
            request = summary_request(model.name, gone, earlier, room, model.options)
            try:
                reply = await self._ask(model, request)
            except ProviderError as error:
                if not error.too_long or not left:
                    raise
                room //= 4
                continue
            if summary := cleaned(reply.message.text, limit):
                return summary
            break
        message = f"{model.name} wrote no summary of the conversation"
        raise ProviderError(message)

    async def _ask(self, model: Model, request: ModelRequest) -> ModelReply:
        began = self._clock.monotonic()
        reply = await model.provider.complete(request)
        self.usage += reply.usage
        self._sink.emit(
            ModelCalled(
                scope=self._scope,
                at=self._clock.wall(),
                model=model.name,
                tool_names=(),
                request_bytes=reply.request_bytes,
                duration_ms=(self._clock.monotonic() - began) * 1000,
                usage=reply.usage,
                provider=model.provider_id,
                purpose="summary",
            )
        )
        return reply

    def _tell(self, message: str) -> None:
        at, scope = self._clock.wall(), self._scope
        told = Diagnostic(at=at, level="warning", subject="model", message=message, scope=scope)
        self._sink.emit(told)
