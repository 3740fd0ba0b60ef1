"""Owns `CodeMode`: tools behind `exec` and `wait`, for an agent loop of your own.

Above: the user's program. Below: `app`. The public Python face; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar

from toolcell.app.conversation import with_children
from toolcell.app.host import Host
from toolcell.app.run import Run
from toolcell.app.runtime import Parts, Runtime
from toolcell.codemode.results import Outcome
from toolcell.config.code_mode import ExecutorName, GuestApi
from toolcell.config.overlay import with_code_mode
from toolcell.config.parse import parse_config
from toolcell.config.resolve import code_mode_options
from toolcell.config.tree import Config
from toolcell.errors import ConfigError, ToolcellError
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.surface.definitions import definitions
from toolcell.tools.content import ToolResult

C = TypeVar("C", bound="CodeModeSession")
Shape = Literal["openai", "openai-responses", "anthropic", "mcp"]


class CodeModeSession:
    """One session: its cells cannot be resumed from another one.

    `CodeMode` is the first of them; `CodeMode.session(id)` gives others.
    """

    _run: Run | None = None

    def definitions(self, shape: Shape = "openai") -> list[dict[str, Any]]:
        """Return the tools to send to the model: `exec`, `wait` and direct-only ones.

        Args:
            shape: The wire's form: `openai` (Chat Completions), `openai-responses`, `anthropic`
                or `mcp`.
        """
        return definitions(self._active().surface().plan, shape)

    async def exec(self, code: str, *, restart_safe: bool = False) -> Outcome:
        """Run a cell and return `Completed`, `Waiting` or `Failed`; it does not raise for trouble.

        Args:
            code: JavaScript; top-level `await` and `return` are legal.
            restart_safe: Refuse calls that are not proven safe to run again (rule 3.13).
        """
        arguments: dict[str, Any] = {"code": code}
        if restart_safe:
            arguments["restartSafe"] = True
        return await self._active().exec(arguments)

    async def wait(self, cell_id: str) -> Outcome:
        """Resume a waiting cell; `cell_id` is `Waiting.cell_id`, the `runId` of the JSON."""
        return await self._active().wait({"runId": cell_id})

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> ToolResult:
        """Run a tool call a model made: `exec`, `wait` or a direct-only tool.

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
            msg = "use it inside `async with CodeMode(...) as cm:`"
            raise ToolcellError(msg, code="not_started")
        return self._run


class CodeMode(CodeModeSession):
    """Code Mode over your tools.

    ```python
    async with CodeMode(tools=[add], executor="quickjs") as cm:
        outcome = await cm.exec("return await add({a: 1, b: 2})")
    ```

    Making one enables code mode, whatever the config says.

    Args:
        tools: Functions (their schema is read from the signature), `Tool`s and plugins.
        mcp_servers: MCP servers by name, with the keys of `mcp.servers` in a config file.
        config: The config tree, as a file would have it, or a `Config`.
        executor: Beats the config: `quickjs` (the sandbox) or `node`.
        guest_api: Beats the config: `catalog` or `tools`.
        host: Hooks, an approver, an event sink and a clock of yours.

    Raises:
        ConfigError: a config value is wrong; the message names its path.
    """

    def __init__(
        self,
        tools: Sequence[Any] = (),
        *,
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
        config: Mapping[str, Any] | Config | None = None,
        executor: ExecutorName | None = None,
        guest_api: GuestApi | None = None,
        host: Host | None = None,
    ) -> None:
        _check(tools, host)
        self._config = with_code_mode(parse_config(config), executor=executor, guest_api=guest_api)
        plugins = [each for each in tools if isinstance(each, ToolPlugin)]
        parts = Parts(
            tools=[each for each in tools if not isinstance(each, ToolPlugin)],
            plugins=plugins,
            mcp_servers=mcp_servers or {},
        )
        self._runtime = Runtime(self._config, parts, host or Host())
        self._sessions: dict[str, CodeModeSession] = {}

    async def __aenter__(self) -> CodeMode:
        """Start sources and make the first session."""
        with_children(self._runtime)
        await self._runtime.start()
        self._run = self._new_run(None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give up all cells and close everything."""
        self._run = None
        self._sessions.clear()
        await self._runtime.aclose()

    def session(self, session_id: str) -> CodeModeSession:
        """Return the session with this id, made when it is new."""
        found = self._sessions.get(session_id)
        if found is None:
            self._active()
            found = self._sessions[session_id] = CodeModeSession()
            found._run = self._new_run(session_id)
        return found

    async def end_session(self, session_id: str) -> None:
        """End a session: its parked cells and saved results are gone. Unknown ids are ignored."""
        ended = self._sessions.pop(session_id, None)
        if ended is not None and ended._run is not None:
            run, ended._run = ended._run, None
            await self._runtime.end(run)
            await self._runtime.swarming.swarm.archive_session(session_id)

    async def prepare(self) -> None:
        """Load the engine and make the catalog's image now, not in the first cell.

        Raises:
            RuntimeUnavailableError: the executor cannot be loaded.
        """
        code = self._active().surface().code
        if code is not None:
            await code.prepare()

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return counts of calls, parked cells and executors, for tests and health checks."""
        return self._runtime.statistics()

    def _new_run(self, session_id: str | None) -> Run:
        scope = self._runtime.scope(session_id=session_id, channel="library")
        options = code_mode_options(self._config, DEFAULT_AGENT)
        return self._runtime.run(scope, options=options)


def _check(tools: Any, host: Any) -> None:
    """Say what is wrong with the two arguments that are easily mixed up."""
    if isinstance(tools, str) or callable(tools) or not isinstance(tools, Iterable):
        msg = f"tools must be a list of functions, tools and plugins, not {type(tools).__name__}"
        raise ConfigError(msg)
    if host is not None and not isinstance(host, Host):
        msg = f"host must be a toolcell.Host, not {type(host).__name__}"
        raise ConfigError(msg)
