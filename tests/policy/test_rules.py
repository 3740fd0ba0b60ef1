"""The tool policy: allow, deny, groups, profiles and layers."""

import pytest

from tests.calls.kit import Counted, core, mcp, plugin
from toolcell.errors import ConfigError
from toolcell.policy.rules import ToolPolicy, allows, effective
from toolcell.tools.tool import Group, SourcedTool, Tool, ToolKind

BODY = Counted()
READ = core("read", BODY)
SHELL = core("exec", BODY)
STATUS = core("session_status", BODY)
TICKETS = plugin("tickets", "create", BODY)
PAGE = mcp("docs", "read.page", BODY)
MCP_READ = mcp("docs", "read", BODY)
CLIENT = SourcedTool(tool=READ.tool, source="client", owner="app", group=Group.CLIENT)


def test_without_any_setting_everything_is_allowed() -> None:
    """rule 2.1: policy only takes away what it names."""
    assert all(allows(ToolPolicy(), tool) for tool in (READ, TICKETS, PAGE, CLIENT))


def test_an_empty_allow_list_means_no_tools() -> None:
    """rule 2.3: an empty `tools.allow` is a run without tools, not one without limits."""
    policy = ToolPolicy(allow=())
    assert policy.empty
    assert effective(ToolPolicy(), policy).empty
    assert effective(ToolPolicy(), None, policy).empty
    assert not any(allows(policy, tool) for tool in (READ, TICKETS, PAGE, CLIENT))
    assert not ToolPolicy(allow=(), also_allow=("read",)).empty
    assert not ToolPolicy().empty


def test_deny_beats_allow_in_every_spelling() -> None:
    """PO-01, rule 4.4: a denied tool is gone, by name, glob or id, in any case."""
    secret = core("secret_tool", BODY)
    for pattern in ("secret_tool", "secret_*", "SECRET_*", "openclaw:core:secret_tool", "*"):
        policy = ToolPolicy(allow=("secret_tool",), deny=(pattern,))
        assert not allows(policy, secret), pattern
    assert allows(ToolPolicy(deny=("secret_*",)), READ)


def test_an_allowed_name_never_admits_an_mcp_tool_of_that_name() -> None:
    """PO-08, rule 2.1: a server gains nothing by calling its tool `read`."""
    policy = ToolPolicy(allow=("read", "group:fs", "rea?"))
    assert allows(policy, READ)
    assert not allows(policy, MCP_READ)


def test_a_denied_name_takes_mcp_tools_of_that_name_along() -> None:
    """PO-01: where a pattern could mean more or less, deny means more."""
    assert not allows(ToolPolicy(deny=("read",)), MCP_READ)


@pytest.mark.parametrize(
    "pattern",
    ["mcp:docs:*", "docs__*", "mcp:docs:read.page", "docs__read.page", "bundle-mcp", "*", "mcp:*"],
)
def test_mcp_tools_are_named_by_their_server(pattern: str) -> None:
    """MC-12: id, server patterns, the plain projected name and the group all pick an MCP tool."""
    assert allows(ToolPolicy(allow=(pattern,)), PAGE)
    assert not allows(ToolPolicy(deny=(pattern,)), PAGE)


def test_the_name_a_provider_sees_picks_its_tool_and_no_other() -> None:
    """MC-12: another tool whose raw name equals the shown name is not captured."""
    policy = ToolPolicy(allow=("docs__read-page",))
    other = mcp("docs", "docs__read-page", BODY)
    assert allows(policy, PAGE, "docs__read-page")
    assert not allows(policy, other, "docs__docs__read-page")
    assert not allows(policy, PAGE)


def test_a_server_pattern_never_reaches_a_server_whose_name_it_begins() -> None:
    """MC-12: server names are whole; `a` is not `a:b` and not `a__b`."""
    for server in ("a:b", "a__b"):
        tool = mcp(server, "x", BODY)
        assert not allows(ToolPolicy(allow=("mcp:a:*", "a__*")), tool)
        assert not allows(ToolPolicy(deny=("mcp:a:*", "a__*")), tool)
    assert allows(ToolPolicy(allow=("mcp:a:b:*",)), mcp("a:b", "x", BODY))


def test_groups_name_core_tools_only() -> None:
    """PO-08: a plugin cannot join a group by choosing a name."""
    policy = ToolPolicy(allow=("group:fs", "group:runtime"))
    assert allows(policy, READ)
    assert allows(policy, SHELL)
    assert not allows(policy, STATUS)
    assert not allows(policy, plugin("p", "write", BODY))


def test_a_plugin_id_is_the_group_of_its_tools() -> None:
    """rule 2.1: `tickets` picks what the plugin `tickets` brought, and only that."""
    policy = ToolPolicy(allow=("tickets",))
    assert allows(policy, TICKETS)
    assert not allows(policy, READ)
    assert not allows(policy, mcp("tickets", "create", BODY))
    assert allows(ToolPolicy(allow=("group:plugins",)), TICKETS)
    assert allows(ToolPolicy(allow=("group:client",)), CLIENT)
    assert not allows(ToolPolicy(allow=("group:plugins", "group:client")), READ)


def test_also_allow_adds_to_allow_and_to_the_profile() -> None:
    """rule 2.1: `alsoAllow: ["bundle-mcp"]` brings MCP tools back."""
    assert allows(ToolPolicy(allow=("read",), also_allow=("bundle-mcp",)), PAGE)
    assert allows(ToolPolicy(profile="coding", also_allow=("docs__*",)), PAGE)
    assert not allows(ToolPolicy(profile="coding"), PAGE)


@pytest.mark.parametrize(
    ("profile", "inside", "outside"),
    [
        ("minimal", STATUS, READ),
        ("coding", SHELL, TICKETS),
        ("messaging", core("conversations_send", BODY), SHELL),
    ],
)
def test_a_profile_is_a_starting_set(
    profile: str, inside: SourcedTool, outside: SourcedTool
) -> None:
    """rule 2.1: what is not in the profile is not there unless it is added."""
    policy = ToolPolicy(profile=profile)  # type: ignore[arg-type]
    assert allows(policy, inside)
    assert not allows(policy, outside)
    assert allows(ToolPolicy(profile="full"), outside)


def test_layers_only_narrow_and_the_agents_profile_replaces_the_global_one() -> None:
    """rule 2.1: global, agent and sandbox policy apply together."""
    combined = effective(
        ToolPolicy(profile="minimal", deny=("exec",)),
        ToolPolicy(profile="coding", also_allow=("tickets",), allow=None),
        ToolPolicy(),
    )
    assert allows(combined, READ)
    assert allows(combined, TICKETS)
    assert not allows(combined, SHELL)
    assert not allows(effective(ToolPolicy(allow=("read",)), ToolPolicy(allow=("exec",))), READ)


def test_a_sandbox_has_no_mcp_tools_until_they_are_added() -> None:
    """rule 2.1: sandboxed agents with MCP need `alsoAllow: ["bundle-mcp"]` in the sandbox layer."""
    plain = effective(ToolPolicy(), None, ToolPolicy())
    opened = ToolPolicy(also_allow=("bundle-mcp",))
    assert allows(plain, READ)
    assert allows(plain, CLIENT)
    assert not allows(plain, PAGE)
    assert allows(effective(ToolPolicy(), None, opened), PAGE)
    assert allows(effective(ToolPolicy(), None, ToolPolicy(allow=("*",))), PAGE)
    assert not allows(effective(ToolPolicy(profile="coding"), None, opened), PAGE)


def test_rules_about_the_shell_never_reach_the_code_cell() -> None:
    """PO-06: both are called exec; policy is about the shell one."""
    cell = SourcedTool(
        tool=Tool(name="exec", description="", parameters={}, execute=BODY, kind=ToolKind.CONTROL),
        source="openclaw",
        owner="core",
        group=Group.CORE,
    )
    policy = ToolPolicy(deny=("exec", "*"))
    assert allows(policy, cell)
    assert not allows(policy, SHELL)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"deny": ("group:fss",)}, "group:fss"),
        ({"allow": (" ",)}, "blank"),
        ({"profile": "codign"}, "codign"),
        ({"also_allow": ("group:",)}, "group:"),
    ],
)
def test_a_setting_that_would_silently_do_nothing_is_refused(
    setting: dict[str, tuple[str, ...]], named: str
) -> None:
    """rule 2.1: a misspelt group in `deny` would leave its tools open, so it is an error."""
    with pytest.raises(ConfigError, match=named) as caught:
        ToolPolicy(**setting)  # type: ignore[arg-type]
    assert caught.value.path.startswith("tools.")
