"""Plugins, local tools and client tools as sources."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toolcell.errors import PluginError, ToolDefinitionError
from toolcell.plugin_sdk.define import define_tool_plugin
from toolcell.protocol.scope import RunScope
from toolcell.sources.client import ClientDefinition, ClientSource
from toolcell.sources.local import LocalSource
from toolcell.sources.plugins import PluginSource, load_plugins
from toolcell.tools.content import ToolResult
from toolcell.tools.decorator import tool
from toolcell.tools.tool import Group, ToolContext

pytestmark = pytest.mark.anyio

GOOD = """
from toolcell.plugin_sdk.define import define_tool_plugin

def ping() -> str:
    return "pong"

plugin = define_tool_plugin(id="{id}", name="Good", description="Good.", tools=[ping])
"""


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


@tool
def ping() -> str:
    return "pong"


def test_plugin_tools_carry_the_plugin_as_their_owner():
    """Contract rules 4.1, rule 4.2: `openclaw:<plugin-id>:<tool>`, no `plugin` source."""
    plugin = define_tool_plugin(id="net", name="Net", description="Net.", tools=[ping])
    (sourced,) = PluginSource(plugin, Group.BUNDLED).tools()
    assert (sourced.id, sourced.source, sourced.owner) == ("openclaw:net:ping", "openclaw", "net")
    assert sourced.group is Group.BUNDLED
    assert sourced.trusted


def test_a_plugin_may_use_the_name_of_a_core_tool():
    """CN-06: the ids differ, so both stay; the catalog settles the callable name."""
    status = tool(name="session_status")(lambda: 1)
    plugin = define_tool_plugin(id="x", name="X", description="X", tools=[status, ping])
    ids = [each.id for each in PluginSource(plugin).tools()]
    assert ids == ["openclaw:x:session_status", "openclaw:x:ping"]


def test_files_and_modules_are_loaded_in_order_and_bundled_ones_come_first(tmp_path, monkeypatch):
    write(tmp_path, "alpha.py", GOOD.format(id="alpha"))
    write(tmp_path, "beta_module.py", GOOD.format(id="beta"))
    (tmp_path / "pack").mkdir()
    write(tmp_path / "pack", "__init__.py", "from .inner import plugin\n")
    write(tmp_path / "pack", "inner.py", GOOD.format(id="gamma"))
    monkeypatch.syspath_prepend(str(tmp_path))
    bundled = define_tool_plugin(id="own", name="Own", description="Own.", tools=[ping])
    loaded = load_plugins(
        ["alpha.py", "beta_module:plugin", "pack"],
        bundled=[bundled],
        entry_points=False,
        base_dir=tmp_path,
    )
    assert loaded.unavailable() == ()
    assert [each.id for each in loaded.tools()] == [
        f"openclaw:{name}:ping" for name in ("own", "alpha", "beta", "gamma")
    ]
    assert [each.group for each in loaded.plugins] == [Group.BUNDLED] + [Group.EXTERNAL] * 3
    del sys.modules["beta_module"]


def test_a_register_function_in_a_file_is_a_plugin_named_after_it(tmp_path):
    text = "def named() -> int:\n    return 1\n\ndef register(api):\n    api.register_tool(named)\n"
    write(tmp_path, "my_tools.py", text)
    loaded = load_plugins(["my_tools.py"], entry_points=False, base_dir=tmp_path)
    assert loaded.unavailable() == ()
    assert [each.id for each in loaded.tools()] == ["openclaw:my-tools:named"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("syntax.py", "def (:\n", "cannot be imported: SyntaxError"),
        ("missing.py", None, "there is no file"),
        ("import_.py", "import no_such_module_here\n", "no_such_module_here.*line 1"),
        ("exits.py", "raise SystemExit(1)\n", "SystemExit"),
        ("empty.py", "x = 1\n", "defines no plugin"),
        ("notes.txt", "x = 1\n", "no Python file"),
        ("bad_id.py", GOOD.format(id="Bad Id"), "plugin id 'Bad Id'"),
        ("fails.py", "def register(api):\n    raise KeyError('token')\n", "KeyError: 'token'"),
        ("no_such_module_here:plugin", None, "cannot be imported: ModuleNotFoundError"),
        ("json:nothing", None, "has no 'nothing'"),
        ("json:dumps_", None, "has no"),
        ("math:pi", None, "neither a ToolPlugin"),
    ],
)
def test_a_broken_plugin_is_told_and_takes_no_other_down(tmp_path, name, text, problem):
    """Issue, bad input: broken plugins get an error that names the place and the remedy."""
    if text is not None:
        write(tmp_path, name, text)
    write(tmp_path, "good.py", GOOD.format(id="good"))
    before = set(sys.modules)
    loaded = load_plugins([name, "good.py"], entry_points=False, base_dir=tmp_path)
    assert [each.id for each in loaded.tools()] == ["openclaw:good:ping"]
    (trouble,) = loaded.unavailable()
    assert trouble.owner == name
    assert name in trouble.reason
    assert re.search(problem, trouble.reason), trouble.reason
    left = {each for each in set(sys.modules) - before if each.startswith("toolcell_plugin_")}
    assert len(left) <= 2


def test_two_plugins_with_one_id_leave_the_first(tmp_path):
    write(tmp_path, "one.py", GOOD.format(id="same"))
    write(tmp_path, "two.py", GOOD.format(id="same"))
    loaded = load_plugins(["one.py", "two.py"], entry_points=False, base_dir=tmp_path)
    assert len(loaded.tools()) == 1
    (trouble,) = loaded.unavailable()
    assert "'same' is taken by plugin 'one.py'" in trouble.reason


def test_denied_plugins_are_not_activated(tmp_path):
    write(tmp_path, "one.py", GOOD.format(id="one"))
    loaded = load_plugins(["one.py"], entry_points=False, deny=["one"], base_dir=tmp_path)
    assert (loaded.tools(), loaded.unavailable()) == ((), ())


def test_installed_plugins_are_found_by_their_entry_points(tmp_path, monkeypatch):
    write(tmp_path, "installed_plugin_here.py", GOOD.format(id="installed"))
    info = tmp_path / "installed_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[toolcell.plugins]\ngood = installed_plugin_here:plugin\nbad = no_such_thing_here:x\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.metadata.version("installed-plugin") == "1.0"
    loaded = load_plugins()
    assert "openclaw:installed:ping" in [each.id for each in loaded.tools()]
    (trouble,) = [each for each in loaded.unavailable() if each.owner == "bad"]
    assert "installed package 'installed-plugin'" in trouble.reason
    assert load_plugins(entry_points=False).tools() == ()
    del sys.modules["installed_plugin_here"]


async def test_closing_unloads_each_plugin_once():
    gone: list[str] = []
    plugin = define_tool_plugin(
        id="x",
        name="X",
        description="X",
        register=lambda api: api.on_unload(lambda: gone.append(1)),
    )
    source = PluginSource(plugin)
    await source.start()
    await source.aclose()
    await source.aclose()
    assert gone == [1]


def test_a_broken_plugin_given_in_code_is_an_error_at_once():
    plugin = define_tool_plugin(id="x", name="X", description="X", tools=lambda _tool: 1 / 0)
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        PluginSource(plugin)


def test_local_tools_are_core_tools_and_functions_become_tools():
    """DESIGN, Names: `openclaw:core:<name>`, trusted."""

    def plain(a: int) -> int:
        return a

    source = LocalSource([ping, plain])
    assert [each.id for each in source.tools()] == ["openclaw:core:ping", "openclaw:core:plain"]
    assert all(each.trusted for each in source.tools())
    assert source.tools() is source.tools()


def test_two_local_tools_with_one_name_are_refused():
    with pytest.raises(ToolDefinitionError, match="two local tools are named 'ping'"):
        LocalSource([ping, ping])


class Echo:
    async def call(
        self, name: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        return ToolResult(details={"name": name, "got": dict(arguments), "for": context.call_id})


async def test_client_tools_are_untrusted_and_run_at_the_client():
    """Contract rules 4.1, rule 7.3; PO-08: a definition cannot choose its own standing."""
    source = ClientSource("phone", [ClientDefinition(name="locate")], port=Echo())
    (sourced,) = source.tools()
    assert (sourced.id, sourced.group, sourced.trusted) == (
        "client:phone:locate",
        Group.CLIENT,
        False,
    )
    assert sourced.tool.catalog_mode == "catalog"
    assert sourced.tool.output_schema is None
    context = ToolContext(
        scope=RunScope(agent_id="a", session_id="s", session_key="k", run_id="r"),
        call_id="c",
        parent_id=None,
        deadline=None,
        update=lambda _value: None,
    )
    result = await sourced.tool.execute({"a": 1}, context)
    assert result.details == {"name": "locate", "got": {"a": 1}, "for": "c"}
    assert result.untrusted is True


@pytest.mark.parametrize(
    ("definitions", "problem"),
    [
        ([ClientDefinition(name="a"), ClientDefinition(name="a")], "two tools named 'a'"),
        ([ClientDefinition(name="")], "not empty"),
        ([ClientDefinition(name="a", parameters=[])], "parameters is a list"),  # type: ignore[arg-type]
        ([ClientDefinition(name=str(n)) for n in range(1001)], "at most 1000"),
    ],
)
def test_client_definitions_that_make_no_sense_are_refused(definitions, problem):
    with pytest.raises(ToolDefinitionError, match=problem):
        ClientSource("phone", definitions, port=Echo())
