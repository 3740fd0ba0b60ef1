"""Owns `toolcell doctor`: what works, what does not, and what to do about it.

Above: `cli.main`. Below: `cli.opening`, `app`, `config.migrate`.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal

import anyio
from cyclopts import Parameter

from toolcell.app.runtime import Runtime
from toolcell.app.settings import usable_gateway_token_of
from toolcell.base.version import VERSION
from toolcell.cli.console import DONE, FAILED, Progress, print_json, print_text, printable
from toolcell.cli.models import all_agents, named_models
from toolcell.cli.opening import Opening, opened
from toolcell.cli.options import SHARED, Shared
from toolcell.codemode.results import Completed, Failed
from toolcell.config.code_mode import ExecutorName
from toolcell.config.edit import write_atomically
from toolcell.config.load import config_path, read_text
from toolcell.config.migrate import migrate
from toolcell.config.overlay import with_code_mode
from toolcell.config.resolve import agent_setting, tool_search_options
from toolcell.config.tree import Config
from toolcell.errors import ConfigError
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.sources.mcp.status import ServerStatus
from toolcell.toolsearch.child.launch import Launcher

LOG_LINES = 5
"""Lines shown of what a server logged."""

State = Literal["ok", "warning", "error", "fixed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    state: State
    subject: str
    text: str


def doctor(
    *,
    fix: Annotated[bool, Parameter(negative="", help="Rewrite an outdated config file.")] = False,
    shared: Shared = SHARED,
) -> int:
    """Look at the config, the executors, plugins, MCP servers and tools, and say what is wrong."""
    progress = Progress()
    findings = [Finding("ok", "toolcell", f"{VERSION} on Python {platform.python_version()}")]
    findings.extend(_config_file(shared, fix=fix))
    config = shared.load()
    findings.extend(_token(config))

    async def run() -> None:
        async with opened(with_code_mode(config), Opening(warn=False), progress) as open_:
            findings.extend(_sources(open_.runtime))
            async for finding in _executors(open_.runtime, config):
                findings.append(finding)  # noqa: PERF401 - an async generator
            findings.append(await _isolation(config))
            findings.extend(_models(open_.runtime, config))

    with progress.running("looking"):
        anyio.run(run)
    if shared.json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print_text(printable(f"{finding.state:8} {finding.subject}: {finding.text}"))
    return FAILED if any(finding.state == "error" for finding in findings) else DONE


def _config_file(shared: Shared, *, fix: bool) -> list[Finding]:
    file, required = config_path(shared.config)
    text = read_text(file, required=required)
    if text is None:
        return [Finding("ok", "config", f"{file} does not exist; defaults apply")]
    migrated = migrate(text, origin=f"config file {str(file)!r}")
    if not migrated.changes:
        return [Finding("ok", "config", str(file))]
    if fix:
        write_atomically(file, migrated.text)
        return [Finding("fixed", "config", change) for change in migrated.changes]
    remedy = "run toolcell doctor --fix"
    return [Finding("warning", "config", f"{change}; {remedy}") for change in migrated.changes]


def _token(config: Config) -> Iterator[Finding]:
    """Say whether the gateway's token can be one; nothing of a gateway that has none yet."""
    from toolcell.gateway.token import kept_token, token_path  # noqa: PLC0415 - HTTP, when used

    try:
        given = usable_gateway_token_of(config)
        if given is not None:
            yield Finding("ok", "gateway token", "gateway.token, long enough")
        elif kept_token() is not None:
            yield Finding("ok", "gateway token", str(token_path()))
    except ConfigError as error:
        yield Finding("error", "gateway token", error.message)


def _sources(runtime: Runtime) -> list[Finding]:
    findings = [
        Finding("error", each.owner, each.reason)
        for each in runtime.unavailable()
        if each.owner not in {server.name for server in runtime.servers()}
    ]
    for server in runtime.servers():
        findings.extend(_server(server))
    findings.append(Finding("ok", "tools", f"{len(runtime.tools())} before policy"))
    return findings


def _server(server: ServerStatus) -> Iterator[Finding]:
    """Name a server's state, version and tools, what is odd about them, and its last words."""
    subject = f"mcp server {server.name}"
    known = " ".join(part for part in (server.server, server.protocol) if part)
    text = f"{server.state}, {server.tool_count} tools, {known or server.transport}"
    bad = bool(server.last_error) and server.state not in {"ready", "disabled"}
    text = f"{text}; {server.last_error}" if bad else text
    yield Finding("error" if bad else "ok", subject, text)
    for odd in server.oddities:
        # What the operator filtered is as wished.
        state: State = "ok" if odd.outcome == "filtered" else "warning"
        yield Finding(state, subject, f"tool {odd.tool} {odd.outcome}: {odd.reason}")
    for line in server.log_tail[-LOG_LINES:]:
        yield Finding("ok", f"{subject} log", line)


def _models(runtime: Runtime, config: Config) -> Iterator[Finding]:
    """Say of each model that agents name whether it can be asked."""
    for agent in all_agents(config):
        if not agent_setting(config, agent, "model"):
            text = "none; agents need one: toolcell config set agents.defaults.model provider/model"
            yield Finding("ok", f"model of {agent}", text)
    for model in named_models(runtime, config):
        if model.problem is None:
            text = "its client is installed and configured; it was not asked"
            yield Finding("ok", model.shown, text)
        else:
            yield Finding("error", model.shown, model.problem)


async def _isolation(config: Config) -> Finding:
    """Say whether `tool_search_code` has a process that is shown to be locked in (rule 10.2)."""
    options = tool_search_options(config, DEFAULT_AGENT)
    launcher = Launcher()
    await launcher.prepare()
    launcher.close()
    subject = "tool search code" + (" (configured)" if options.enabled else "")
    if launcher.trouble is None:
        return Finding("ok", subject, "its process has no network, files, children or environment")
    wanted = options.enabled and options.mode == "code"
    text = f"{launcher.trouble}; the mode falls back to tools"
    return Finding("warning" if wanted else "ok", subject, text)


async def _executors(runtime: Runtime, config: Config) -> AsyncIterator[Finding]:
    """Run one cell on each executor; the configured one must work."""
    wanted = runtime.options("main").executor
    names: tuple[ExecutorName, ...] = ("quickjs", "node")
    for name in names:
        options = replace(runtime.options("main"), executor=name)
        run = runtime.run(runtime.scope(channel="doctor"), options=options)
        outcome = await run.exec({"code": "return 6 * 7"})
        await runtime.end(run)
        subject = f"executor {name}" + (" (configured)" if name == wanted else "")
        if isinstance(outcome, Completed) and outcome.value == 42:
            engine = await runtime.executors.get(name).identify()
            yield Finding("ok", subject, f"runs cells: {engine}")
        else:
            error = outcome.error if isinstance(outcome, Failed) else outcome.status
            uses = config.tools.code_mode is not None and name == wanted
            yield Finding("error" if uses else "warning", subject, error)
