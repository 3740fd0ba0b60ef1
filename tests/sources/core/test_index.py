"""The quick index names every core tool that programs have, with its output, by default."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.tree import Config
from toolcell.schema.hints import input_hint, output_hint
from toolcell.sessions.memory import MemorySessions
from toolcell.tools.tool import Tool

pytestmark = pytest.mark.anyio

CONTRACTED = frozenset(
    {
        "agents_list",
        "apply_patch",
        "conversations_list",
        "conversations_send",
        "conversations_turn",
        "edit",
        "openclaw",
        "read",
        "sessions_history",
        "sessions_list",
        "sessions_search",
        "sessions_send",
        "session_status",
        "web_fetch",
        "web_search",
    }
)
"""Rule 7.4, without `screen`, `spawn_task` and `terminal`, which come with the control page."""

OURS = CONTRACTED | frozenset({"ls", "find", "grep", "write", "exec", "process", "image"})

DIRECT_ONLY = frozenset({"image"})
"""Not in the catalog (rule 4.4), and so not in the index."""

REPLAY_SAFE = frozenset(
    {
        "read",
        "ls",
        "find",
        "grep",
        "image",
        "agents_list",
        "sessions_list",
        "sessions_history",
        "sessions_search",
        "session_status",
        "conversations_list",
        "openclaw",
    }
)


def runtime(root: Path) -> Runtime:
    config = Config.model_validate(
        {"tools": {"codeMode": {"enabled": True, "executor": "quickjs"}}}
    )
    parts = Parts(workspace=root, sessions=MemorySessions(), load_plugins=False)
    return Runtime(config, parts, Host())


def core(root: Path) -> dict[str, Tool]:
    return {each.tool.name: each.tool for each in runtime(root).tools() if each.owner == "core"}


@pytest.mark.parametrize("guest_api", ["catalog", "tools"])
async def test_the_quick_index_names_every_core_tool_with_its_output(root, guest_api):
    """rule 7.4, rule 7.2, rule 4.6."""
    made = runtime(root)
    scope = made.scope()
    options = made.options(scope.agent_id)
    run = made.run(scope, options=replace(options, guest_api=guest_api))
    code = run.surface().code
    assert code is not None
    description = next(tool.description for tool in code.controls() if tool.name == "exec")
    for name in sorted(DIRECT_ONLY):
        assert f"- {name} " not in description
        assert f"core:{name}" not in description
    for name in sorted(OURS - DIRECT_ONLY):
        printed = f'- "openclaw:core:{name}" ' if guest_api == "tools" else f"- {name} "
        lines = [line for line in description.split("\n") if line.startswith(printed)]
        assert len(lines) == 1, name
        assert not lines[0].endswith("-> ?"), name
    assert "omitted" not in description
    await made.aclose()


def test_every_core_tool_has_a_complete_contract_and_states_whether_it_is_replay_safe(root):
    """rule 7.4, rule 3.13."""
    tools = core(root)
    assert tools.keys() == OURS
    for name, tool in tools.items():
        assert output_hint(tool.output_schema) is not None, name
        assert input_hint(tool.parameters) != "unknown", name
        assert "..." not in input_hint(tool.parameters), name
        assert tool.replay_safe == (name in REPLAY_SAFE), name
