"""Owns `toolcell config`: get, set, unset, validate.

Above: `cli.main`. Below: `config`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cyclopts import App

from toolcell.app.settings import (
    approval_rules_of,
    check_mcp_keys,
    endpoints_of,
    mcp_servers_of,
    policy_of,
    usable_gateway_token_of,
)
from toolcell.cli.console import DONE, MISUSED, print_error, print_json, print_text
from toolcell.cli.options import SHARED, Shared
from toolcell.config.edit import set_value, split_path, unset_value, write_atomically
from toolcell.config.load import config_path, parse_json5, read_text
from toolcell.config.parse import parse_config
from toolcell.config.resolve import agent_setting, code_mode_options
from toolcell.config.tree import Config, McpSettings
from toolcell.errors import ConfigError
from toolcell.providers.registry import ModelRef

app = App(name="config", help="Read and change the config file.")


@app.command
def get(path: str | None = None, *, shared: Shared = SHARED) -> int:
    """Print the value at PATH as the file has it, or the whole file; defaults are not filled in.

    `toolcell config get --json tools.codeMode` prints JSON.
    """
    data = _data(shared)
    if path is None:
        print_json(data)
        return DONE
    value: Any = data
    for key in split_path(path):
        if not isinstance(value, dict) or key not in value:
            print_error(f"{path} is not set in the config file; its default applies")
            return 1
        value = value[key]
    if isinstance(value, str) and not shared.json:
        print_text(value)
    else:
        print_json(value)
    return DONE


@app.command(name="set")
def set_(path: str, value: str, *, shared: Shared = SHARED) -> int:
    """Set the value at PATH; VALUE is JSON5, and text that is no JSON5 is taken as a string.

    The file is checked before it is written; comments and layout stay.
    """
    file, _ = config_path(shared.config)
    text = read_text(file, required=False) or ""
    return _write(shared, set_value(text, split_path(path), _value(value)))


@app.command
def unset(path: str, *, shared: Shared = SHARED) -> int:
    """Remove the value at PATH."""
    file, _ = config_path(shared.config)
    text = read_text(file, required=True) or ""
    return _write(shared, unset_value(text, split_path(path)))


@app.command
def validate(*, shared: Shared = SHARED) -> int:
    """Check the file, and print what code mode comes to for each agent."""
    config = shared.load()
    agents = ["main", *(name for name in config.agents.entries if name != "main")]
    problems = list(_problems(config, agents))
    if problems:
        for problem in problems:
            print_error(problem)
        return MISUSED
    effective = {}
    for agent in agents:
        options = code_mode_options(config, agent)
        effective[agent] = {
            "codeMode": options.enabled,
            "executor": options.executor,
            "guestApi": options.guest_api,
        }
    file, _ = config_path(shared.config)
    if shared.json:
        print_json({"file": str(file), "exists": file.exists(), "agents": effective})
        return DONE
    print_text(f"{file}: " + ("valid" if file.exists() else "does not exist; defaults apply"))
    for agent, row in effective.items():
        state = "on" if row["codeMode"] is True else "off"
        print_text(f"{agent}: code mode {state}, {row['executor']}, {row['guestApi']} API")
    return DONE


def _problems(config: Config, agents: Sequence[str]) -> Iterator[str]:
    """Yield what the tree's own types cannot tell: patterns, servers, models, variables."""
    checks: list[Callable[[], object]] = [
        lambda: usable_gateway_token_of(config),
        lambda: approval_rules_of(config),
        *(
            lambda name=name, given=given: mcp_servers_of(
                Config(mcp=McpSettings(servers={name: given}))
            )
            for name, given in config.mcp.servers.items()
        ),
        *(lambda agent=agent: policy_of(config, agent, sandboxed=True) for agent in agents),
        *(
            lambda model=model: ModelRef.parse(model)
            for agent in agents
            if (model := agent_setting(config, agent, "model")) is not None
        ),
    ]
    for check in checks:
        try:
            check()
        except ConfigError as error:
            yield error.message
    for endpoint in endpoints_of(config).values():
        if endpoint.problem:
            yield endpoint.problem


def _data(shared: Shared) -> Any:
    file, required = config_path(shared.config)
    text = read_text(file, required=required)
    return parse_json5(text, origin=str(file)) if text and text.strip() else {}


def _value(text: str) -> Any:
    try:
        return parse_json5(text, origin="the value")
    except ConfigError:
        return text


def _write(shared: Shared, text: str) -> int:
    file, _ = config_path(shared.config)
    try:
        tree = parse_json5(text, origin=str(file))
        check_mcp_keys(parse_config(tree, folder=file.parent))
    except ConfigError as error:
        print_error(f"not written: {error.message}")
        return MISUSED
    write_atomically(file, text)
    return DONE
