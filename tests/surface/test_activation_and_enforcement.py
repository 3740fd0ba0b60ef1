"""When code mode is on, and that nothing else leaves then."""

import pytest

from tests.surface.tools import CONTROLS, core, names
from toolcell.config.code_mode import CodeModeOptions
from toolcell.errors import PayloadViolationError
from toolcell.surface.activation import activation
from toolcell.surface.definitions import definitions
from toolcell.surface.enforcement import check_payload, tool_labels
from toolcell.surface.plan import plan_code_mode, plan_direct

ON = CodeModeOptions(enabled=True)
TOOLS = [core("read"), core("computer", catalog_mode="direct-only")]
PREFIX = "Code mode payload tool surface violation: expected exec,wait"


@pytest.mark.parametrize(
    ("options", "flags", "mode"),
    [
        (ON, {}, "code"),
        (ON, {"tool_search": True}, "code"),
        (ON, {"raw_model_call": True}, "none"),
        (ON, {"tools_disabled": True}, "none"),
        (CodeModeOptions(), {}, "direct"),
        (CodeModeOptions(), {"tool_search": True}, "tool-search"),
        (CodeModeOptions(), {"tool_search": True, "raw_model_call": True}, "none"),
        (CodeModeOptions(enabled="auto"), {}, "direct"),
    ],
)
def test_what_a_runs_tools_are_put_behind(options, flags, mode):
    """rule 1.4, rule 2.1, rule 2.3, rule 2.4, BEHAVIOURS 25, BEHAVIOURS 26"""
    decided = activation(options, TOOLS, **flags)
    assert decided.mode == mode
    assert decided.enforced is (mode == "code")
    assert decided.reason


def test_a_run_that_policy_leaves_without_tools_does_not_activate():
    """rule 2.3: an empty allow list, controls or not."""
    assert activation(ON, []).mode == "none"
    assert activation(ON, CONTROLS).mode == "none"


PLAN = plan_code_mode(TOOLS, CONTROLS)


@pytest.mark.parametrize("shape", ["openai", "openai-responses", "anthropic"])
def test_the_planned_payload_passes_in_every_shape(shape):
    """rule 2.6"""
    tools = definitions(PLAN, shape)
    check = check_payload(PLAN)
    check({"tools": tools})
    check({"tools": tools[:2]})


@pytest.mark.parametrize("body", [{}, {"tools": []}, {"tools": None}, {"model": "m"}])
def test_a_payload_without_tools_is_refused(body):
    """rule 2.6, BEHAVIOURS 36"""
    with pytest.raises(PayloadViolationError) as caught:
        check_payload(PLAN)(body)
    assert str(caught.value) == f"{PREFIX}; got no tools"


def function(name):
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    ("tools", "got"),
    [
        ([function("b"), function("a")], "a,b"),
        ([function("exec"), function("wait"), function("read")], "exec,read,wait"),
        ([function("exec")], "exec"),
        ([function("wait"), function("computer")], "computer,wait"),
        ([function("exec"), function("exec"), function("wait")], "exec,exec,wait"),
        (
            [function("exec"), function("wait"), function("computer"), function("computer")],
            "computer,computer,exec,wait",
        ),
        ([function("exec"), function("wait"), {"type": "function"}], "exec,wait"),
        ([function("exec"), function("wait"), "read"], "exec,wait"),
        ([function("exec"), function("wait"), {"functionDeclarations": []}], "exec,wait"),
        ([{"type": "function", "function": {"name": ""}}], "none"),
        ([{"name": "exec"}, {"name": "wait"}, {"name": "Exec"}], "Exec,exec,wait"),
        (
            [function("exec"), function("wait"), {"type": "web_search_20250305", "name": "exec2"}],
            "exec,hosted:web_search_20250305,wait",
        ),
        (
            [function("exec"), function("wait"), {"type": "mcp", "server_url": "http://x"}],
            "exec,hosted:mcp,wait",
        ),
    ],
)
def test_a_payload_with_other_tools_is_refused_and_named(tools, got):
    """rule 2.6, BEHAVIOURS 37, BEHAVIOURS 38"""
    with pytest.raises(PayloadViolationError) as caught:
        check_payload(PLAN)({"tools": tools})
    assert str(caught.value) == f"{PREFIX} plus direct-only tools; got {got}"


@pytest.mark.parametrize("name", ["tool_search", "tool_search_code", "tool_describe", "tool_call"])
def test_a_tool_search_control_in_the_payload_is_refused(name):
    """rule 2.4, rule 2.6"""
    with pytest.raises(PayloadViolationError, match=name):
        check_payload(PLAN)({"tools": [function("exec"), function("wait"), function(name)]})


@pytest.mark.parametrize(
    "extra",
    [
        {"functions": [{"name": "read"}]},
        {"mcp_servers": [{"url": "http://x"}]},
        {"web_search_options": {"a": 1}},
        {"functions": "read"},
    ],
)
def test_tools_beside_the_tool_list_are_seen(extra):
    """rule 2.6: an endpoint must not be made to run tools of its own."""
    with pytest.raises(PayloadViolationError):
        check_payload(PLAN)({"tools": definitions(PLAN), **extra})


def test_a_hosted_tool_passes_only_when_authorised():
    """BEHAVIOURS 39"""
    body = {"tools": [*definitions(PLAN, "openai-responses"), {"type": "web_search"}]}
    with pytest.raises(PayloadViolationError, match="hosted:web_search"):
        check_payload(PLAN)(body)
    check_payload(PLAN, hosted={"web_search"})(body)
    twice = {"tools": [*body["tools"], {"type": "web_search"}]}
    with pytest.raises(PayloadViolationError):
        check_payload(PLAN, hosted={"web_search"})(twice)


def test_hosted_tools_are_labelled_by_their_type():
    """BEHAVIOURS 40"""
    assert list(tool_labels({"tools": [function("a"), {"type": "web_search"}, 3]})) == [
        "a",
        "hosted:web_search",
        None,
    ]


def test_direct_mode_is_not_enforced():
    """rule 2.3"""
    check_payload(plan_direct(TOOLS))({"tools": [function("anything")]})


def test_definitions_are_fresh_data_each_time():
    first = definitions(PLAN)
    first[0]["function"]["parameters"]["properties"]["v"]["type"] = "changed"
    again = definitions(PLAN)[0]["function"]["parameters"]["properties"]
    assert again["v"]["type"] == "string"
    assert [tool["function"]["name"] for tool in first] == names(PLAN)
