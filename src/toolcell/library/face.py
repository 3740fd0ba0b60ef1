"""Owns what the public faces share: opening, sessions, definitions for a model, a model's calls.

Above: `library.code_mode`, `library.tool_search`. Below: `app`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, TypeVar

from toolcell.app.host import Host
from toolcell.app.run import Run
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.code_mode import CodeModeOptions
from toolcell.config.tree import Config
from toolcell.errors import ConfigError, ToolcellError
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.surface.definitions import definitions
from toolcell.tools.content import ToolResult

Shape = Literal["openai", "openai-responses", "anthropic", "mcp"]


class Session:
    """One session of a face."""

    _opening: ClassVar[str]
    """How a program opens it, for the error of one that did not."""

    _run: Run | None = None

    def definitions(self, shape: Shape = "openai") -> list[dict[str, Any]]:
        """Return the tools to send to the model: the controls and direct-only ones.

        Args:
            shape: The wire's form: `openai` (Chat Completions), `openai-responses`, `anthropic`
                or `mcp`.
        """
        return definitions(self._active().surface().plan, shape)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> ToolResult:
        """Run a tool call a model made: a control or a direct-only tool, by the names it was sent.

        Returns:
            `content` for the model, `details` as plain JSON, `is_error`. Unknown names and refused
            calls come back as errors, never as exceptions.
        """
        if not isinstance(arguments, Mapping):
            kind = type(arguments).__name__
            msg = f"arguments must be an object, not {kind}; parse JSON text first"
            raise ToolcellError(msg, code="invalid_arguments")
        return await self._active().call(name, arguments, call_id=call_id)

    def _active(self) -> Run:
        if self._run is None:
            msg = f"use it inside `async with {self._opening}:`"
            raise ToolcellError(msg, code="not_started")
        return self._run


S = TypeVar("S", bound=Session)


class Sessions(Generic[S]):
    """The runtime behind a face, opened and closed with it, and the face's sessions."""

    def __init__(
        self,
        config: Config,
        tools: Sequence[Any],
        mcp_servers: Mapping[str, Mapping[str, Any]] | None,
        host: Host | None,
        *,
        new: Callable[[], S],
        options: CodeModeOptions | None = None,
    ) -> None:
        """Make the runtime; nothing runs yet.

        Args:
            config: What the file says, with what the face was told.
            tools: Functions, `Tool`s and plugins.
            mcp_servers: By name.
            host: The program's own parts.
            new: Makes a session.
            options: Of code mode, where it is what the face is about.

        Raises:
            ConfigError: `tools` or `host` is something else.
        """
        _check(tools, host)
        parts = Parts(
            tools=[each for each in tools if not isinstance(each, ToolPlugin)],
            plugins=[each for each in tools if isinstance(each, ToolPlugin)],
            mcp_servers=mcp_servers or {},
        )
        self.runtime = Runtime(config, parts, host or Host())
        self._new = new
        self._options = options
        self._named: dict[str, S] = {}

    async def open(self, first: S) -> None:
        """Start sources and give the face itself a run."""
        if self.runtime.swarming.enabled(DEFAULT_AGENT):
            from toolcell.app.conversation import (  # noqa: PLC0415 - the agent loop, when used
                with_children,
            )

            with_children(self.runtime)
        await self.runtime.start()
        first._run = self._new_run(None)

    async def aclose(self, first: S) -> None:
        """End what runs and close everything."""
        first._run = None
        self._named.clear()
        await self.runtime.aclose()

    def named(self, session_id: str) -> S:
        """Return the session with this id, made when it is new."""
        found = self._named.get(session_id)
        if found is None:
            found = self._named[session_id] = self._new()
            found._run = self._new_run(session_id)
        return found

    async def end(self, session_id: str) -> None:
        """End a session; unknown ids are ignored."""
        ended = self._named.pop(session_id, None)
        if ended is not None and ended._run is not None:
            run, ended._run = ended._run, None
            await self.runtime.end(run)
            await self.runtime.swarming.archive_session(session_id)

    def _new_run(self, session_id: str | None) -> Run:
        scope = self.runtime.scope(session_id=session_id, channel="library")
        return self.runtime.run(scope, options=self._options)


def _check(tools: Any, host: Any) -> None:
    """Say what is wrong with the two arguments that are easily mixed up."""
    if isinstance(tools, str) or callable(tools) or not isinstance(tools, Iterable):
        msg = f"tools must be a list of functions, tools and plugins, not {type(tools).__name__}"
        raise ConfigError(msg)
    if host is not None and not isinstance(host, Host):
        msg = f"host must be a toolcell.Host, not {type(host).__name__}"
        raise ConfigError(msg)
