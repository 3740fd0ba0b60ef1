"""A workspace on disk, and a way to call a tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from toolcell.base.deadline import Deadline
from toolcell.protocol.scope import RunScope
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.tool import Tool, ToolContext


def context(
    *, session: str = "k", deadline: Deadline | None = None, updates: list[Any] | None = None
) -> ToolContext:
    return ToolContext(
        scope=RunScope(agent_id="main", session_id="s", session_key=session, run_id="r"),
        call_id="c1",
        parent_id=None,
        deadline=deadline,
        update=(lambda _value: None) if updates is None else updates.append,
    )


async def call(tool: Tool, /, *, using: ToolContext | None = None, **arguments: Any) -> Any:
    """Call as the gate does: arguments and details are checked against the tool's schemas."""
    jsonschema_rs.validator_for(dict(tool.parameters)).validate(arguments)
    details = (await tool.execute(arguments, using or context())).details
    assert tool.output_schema is not None
    jsonschema_rs.validator_for(dict(tool.output_schema)).validate(details)
    return details


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret\n")
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "b.py").write_text("import os\n")
    (folder / "sub" / "deep" / "c.py").write_text("print('deep')\n")
    return folder


@pytest.fixture
def workspace(root: Path) -> WorkspaceRoots:
    return WorkspaceRoots([root])
