"""Owns `CodeMode`: tools behind `exec` and `wait`, for an agent loop of your own.

Above: the user's program, adapters. Below: `app`. The public Python face; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from toolcell.app.host import Host
from toolcell.codemode.results import Outcome
from toolcell.config.code_mode import ExecutorName, GuestApi
from toolcell.config.overlay import with_code_mode
from toolcell.config.parse import parse_config
from toolcell.config.resolve import code_mode_options
from toolcell.config.tree import Config
from toolcell.library.face import Session, Sessions
from toolcell.protocol.scope import DEFAULT_AGENT


class CodeModeSession(Session):
    """One session: its cells cannot be resumed from another one.

    `CodeMode` is the first of them; `CodeMode.session(id)` gives others.
    """

    _opening = "CodeMode(...) as cm"

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
        settings = with_code_mode(parse_config(config), executor=executor, guest_api=guest_api)
        self._opened = Sessions(
            settings,
            tools,
            mcp_servers,
            host,
            new=CodeModeSession,
            options=code_mode_options(settings, DEFAULT_AGENT),
        )

    async def __aenter__(self) -> CodeMode:
        """Start sources and make the first session."""
        await self._opened.open(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what runs and close everything."""
        await self._opened.aclose(self)

    def session(self, session_id: str) -> CodeModeSession:
        """Return the session with this id, made when it is new."""
        self._active()
        return self._opened.named(session_id)

    async def end_session(self, session_id: str) -> None:
        """End a session: its parked cells and saved results are gone. Unknown ids are ignored."""
        await self._opened.end(session_id)

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return counts of calls, parked cells and executors, for tests and health checks."""
        return self._opened.runtime.statistics()

    async def prepare(self) -> None:
        """Load the engine and make the catalog's image now, not in the first cell.

        Raises:
            RuntimeUnavailableError: the executor cannot be loaded.
        """
        code = (await self._active().ready()).code
        if code is not None:
            await code.prepare()
