"""Owns the models of one agent run: the first one, and those tried when it cannot answer.

Each has a `Run` of its own, because a model's row may turn code mode on or off (rule 1.4): a
fallback resolves on its own entry and shows its own tools. All of them act for the same scope, so a
cell that one of them left parked can be resumed by the next.

Above: `app.conversation`. Below: `app.runtime`, `agent.contract`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from toolcell.agent.contract import PlanSurface, Route
from toolcell.app.run import Run
from toolcell.app.runtime import Offer, Runtime
from toolcell.app.settings import model_options_of
from toolcell.config.resolve import context_window, model_row, takes_images
from toolcell.errors import ProviderError
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.scope import RunScope
from toolcell.providers.contract import Provider
from toolcell.providers.registry import ModelRef
from toolcell.providers.request_options import options_for
from toolcell.sources.contract import Source
from toolcell.surface.plan import SurfacePlan

REFUSED_HERE: Final = frozenset({401, 402, 403, 404})
"""Answers that say this endpoint will not serve us; another may. A 400 would be one anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunExtras:
    """What a caller brings along for one run.

    Attributes:
        options: Further keys of the model request, in the words of Chat Completions; each model
            gets them in those of its own wire, and they win over its configured ones.
        sources: Tools of this run alone.
        tools_disabled: The run has no tools (rule 2.3).
        prompt: What the user says; set by `converse`.
        before_model: Awaited before each model call.
        replay_safe_only: Only audited read-only tools: a turn that is rebuilt (rule 3.13).
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    tools_disabled: bool = False
    prompt: str = ""
    before_model: Callable[[], Awaitable[None]] | None = None
    replay_safe_only: bool = False


NO_EXTRAS: Final = RunExtras()


class Routes:
    """Opens models as they are needed; close it when the run is over.

    Raises:
        ConfigError: a fallback is malformed or its provider is not configured.
    """

    def __init__(
        self,
        runtime: Runtime,
        scope: RunScope,
        fallbacks: Sequence[str],
        extras: RunExtras = NO_EXTRAS,
    ) -> None:
        self._extras = extras
        self._runtime = runtime
        self._scope = scope
        self._left = list(fallbacks)
        for name in self._left:
            runtime.providers.check(name)
        self._runs: list[Run] = []
        self._current = ""

    async def first(self, name: str) -> Route:
        """Return the way to `provider/model`; a large catalog that is new is built off the loop.

        Raises:
            ConfigError: the name is malformed or its provider is not configured.
            ProviderError: the provider cannot be opened.
            RequestError: the caller's own tools cannot be offered (CN-07).
        """
        provider, ref = self._runtime.providers.resolve(name)
        run = self._opened(name)
        await run.ready()
        return self._route(name, run, provider, ref)

    def _to(self, name: str) -> Route:
        provider, ref = self._runtime.providers.resolve(name)
        return self._route(name, self._opened(name), provider, ref)

    def _opened(self, name: str) -> Run:
        extras = self._extras
        run = self._runtime.run(
            self._scope,
            model=name,
            sources=extras.sources,
            offer=_offer(extras),
            prompt=extras.prompt,
        )
        self._runs.append(run)
        self._current = name
        return run

    def _route(self, name: str, run: Run, provider: Provider, ref: ModelRef) -> Route:
        run.surface()  # tools that cannot be offered are told before the run is on record
        return Route(
            provider=provider,
            model=ref.model,
            plan=self._plan(run),
            call_tool=run.invoke,
            provider_id=ref.provider_id,
            options={**model_options_of(self._runtime.config, name), **self._options(name)},
            takes_images=takes_images(self._runtime.config, name),
            context_window=context_window(self._runtime.config, name),
        )

    def fallback(self, error: ProviderError) -> Route | None:
        """Return the next model to try, or None when there is none or `error` would meet it too.

        Raises:
            ProviderError: the next one cannot be opened.
        """
        # What is too long for one model may fit into another.
        if not (error.retryable or error.too_long or error.status in REFUSED_HERE):
            return None
        while self._left and self._left[0] == self._current:
            self._left.pop(0)
        if not self._left:
            return None
        failed, name = self._current, self._left.pop(0)
        route = self._to(name)
        self._runtime.sink.emit(
            Diagnostic(
                at=self._runtime.host.clock.wall(),
                level="warning",
                subject="model",
                message=f"{failed} cannot answer, going on with {name}: {error.message}",
                scope=self._scope,
            )
        )
        return route

    async def aclose(self) -> None:
        """End the run of every model that was tried, even when the task is being cancelled."""
        with anyio.CancelScope(shield=True):
            while self._runs:
                await self._runtime.end(self._runs.pop())

    def _options(self, name: str) -> Mapping[str, Any]:
        if not self._extras.options:
            return {}
        provider = self._runtime.config.models.providers.get(name.partition("/")[0])
        api = provider.api if provider is not None else "openai-chat"
        row = model_row(self._runtime.config, name)
        return options_for(
            api,
            self._extras.options,
            configured=row.options if row is not None else None,
            thinking=row.compat.thinking if row is not None else "adaptive",
        )

    def _plan(self, run: Run) -> PlanSurface:
        before = self._extras.before_model
        if before is None:
            return run.plan

        async def plan() -> SurfacePlan:
            await before()
            return await run.plan()

        return plan


def _offer(extras: RunExtras) -> Offer:
    if extras.tools_disabled:
        return "none"
    return "replay-safe" if extras.replay_safe_only else "all"
