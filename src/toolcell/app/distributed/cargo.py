"""Owns what travels to a worker: what a runtime is made from, as data, and code given in code.

The configuration travels as it was written: `${NAME}` stands for a variable of the worker's own
environment. Functions travel by cloudpickle: those of a module by its name, others as they are.

Above: the runner packs, the worker unpacks. Below: `app.runtime`, config. Refuses to know: Ray.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.base.raised import text_of_error
from toolcell.catalog.search.searcher import Reranker
from toolcell.config.tree import Config
from toolcell.errors import ConfigError
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.protocol.hooks import Hooks
from toolcell.sessions.store import SessionStore
from toolcell.sources.mcp.options import McpOptions

Dumps = Callable[[Any], bytes]
_PATH: Final = "tools.swarm.backend"
_UNPACKABLE: Final = (
    pickle.PicklingError,
    TypeError,
    AttributeError,
    ValueError,
    RecursionError,
    NotImplementedError,
    OSError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cargo:
    """What a worker makes its runtime from.

    Attributes:
        config: The tree as plain data; on a worker every backend is `local`.
        lend: Lets a runtime run the turns of children.
        home: The name of the machine that it comes from.
        record: The session database there; None when there is none.
    """

    config: Mapping[str, Any]
    lend: Callable[[Runtime], None]
    home: str
    record: Path | None
    tools: Sequence[Any]
    plugins: Sequence[ToolPlugin]
    mcp_servers: Mapping[str, Mapping[str, Any]]
    mcp: McpOptions | None
    workspace: Path | None
    load_plugins: bool
    secrets: frozenset[str]
    hooks: Hooks | None
    reranker: Reranker | None


def packed(runtime: Runtime, lend: Callable[[Runtime], None], dumps: Dumps) -> bytes:
    """Return what a worker needs to run children of `runtime`.

    Raises:
        ConfigError: something cannot travel; says what, why and what to do.
    """
    parts, host = runtime.parts, runtime.host
    if parts.sources:
        names = ", ".join(sorted({type(each).__name__ for each in parts.sources}))
        msg = f"sources given in code ({names}) cannot travel to Ray workers; make a plugin of them"
        raise ConfigError(msg, path=_PATH)
    cargo = Cargo(
        config=worker_config(runtime.config),
        lend=lend,
        home=socket.gethostname(),
        record=_record(parts),
        tools=tuple(parts.tools),
        plugins=tuple(parts.plugins),
        mcp_servers={name: dict(given) for name, given in parts.mcp_servers.items()},
        mcp=parts.mcp,
        workspace=None if parts.workspace is None else parts.workspace.absolute(),
        load_plugins=parts.load_plugins,
        secrets=parts.secrets,
        hooks=host.hooks,
        reranker=host.reranker,
    )
    for what, value in _given(parts, host):
        try:
            dumps(value)
        except _UNPACKABLE as error:
            msg = (
                f"{what} cannot travel to Ray workers ({text_of_error(error)}); put it into a "
                'module or a plugin that the workers can import, or set the backend to "local"'
            )
            raise ConfigError(msg, path=_PATH) from error
    return dumps(cargo)


def worker_config(config: Config) -> dict[str, Any]:
    """Return the tree as data for a worker, where children of children run in the same process."""
    tree: dict[str, Any] = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    entries = tree.get("agents", {}).get("entries", {}).values()
    for tools in (tree.get("tools", {}), *(entry.get("tools", {}) for entry in entries)):
        swarm = tools.get("swarm")
        if swarm is not None and "backend" in swarm:
            swarm["backend"] = "local"
    return tree


def _record(parts: Parts) -> Path | None:
    sessions = parts.sessions
    return sessions.path.absolute() if isinstance(sessions, SessionStore) else None


def _given(parts: Parts, host: Host) -> Iterator[tuple[str, Any]]:
    """Yield what was given in code, each with the words for it."""
    for tool in parts.tools:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__)
        yield f"the tool {name!r}", tool
    for plugin in parts.plugins:
        yield f"the plugin {plugin.id!r}", plugin
    yield "what MCP servers are given in code", (dict(parts.mcp_servers), parts.mcp)
    yield "the hooks of the host", host.hooks
    yield "the reranker of the host", host.reranker
