"""Which tools a model sees, under which names."""

import re

import pytest

from tests.surface.tools import (
    CONTROLS,
    EXEC,
    TOOL_SEARCH,
    WAIT,
    client,
    control,
    core,
    mcp,
    names,
    plugin,
)
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.errors import PayloadViolationError, RequestError
from toolcell.surface.plan import plan_code_mode, plan_direct
from toolcell.tools.tool import ToolKind


def test_code_mode_shows_exec_and_wait_and_catalogs_the_rest():
    """rule 2.2, rule 2.7, BEHAVIOURS 28: the shell's exec is hidden and stays in the catalog."""
    tools = [*CONTROLS, core("exec"), plugin("p", "fetch")]
    plan = plan_code_mode(tools, CONTROLS)
    assert names(plan) == ["exec", "wait"]
    assert plan.visible[0].sourced is EXEC
    assert plan.resolve("exec").sourced is EXEC
    catalog = CatalogSnapshot.build(t for t in tools if t.tool.kind is not ToolKind.CONTROL)
    assert len(catalog.entries) == 2


def test_the_controls_come_first_whatever_their_order():
    """rule 2.2"""
    assert names(plan_code_mode([core("read")], (WAIT, EXEC))) == ["exec", "wait"]


def test_direct_only_tools_stay_visible_behind_the_controls():
    """rule 2.2, BEHAVIOURS 29, PP-02"""
    direct = [core(name, catalog_mode="direct-only") for name in ("message", "view_image")]
    ordinary = [core(f"tool{n}") for n in range(20)]
    plan = plan_code_mode([*ordinary, *direct], CONTROLS)
    assert names(plan) == ["exec", "wait", "message", "view_image"]
    assert plan.allowed_names == {"exec", "wait", "message", "view_image"}


@pytest.mark.parametrize("name", ["message", "computer"])
def test_a_remote_tool_is_never_promoted_to_direct_only(name):
    """PO-08, PP-02, BEHAVIOURS 31: whatever it says of itself or is called."""
    own = core(name, catalog_mode="direct-only")
    remote = [
        mcp("fx", name, catalog_mode="direct-only"),
        client(f"{name}2", catalog_mode="direct-only"),
    ]
    plan = plan_code_mode([own, *remote], CONTROLS, required_direct={name, f"{name}2"})
    assert names(plan) == ["exec", "wait", name]
    assert plan.resolve(name).sourced is own
    catalog = CatalogSnapshot.build([own, *remote])
    assert {entry.id for entry in catalog.entries} == {tool.id for tool in remote}


def test_a_required_tool_is_visible_without_being_direct_only():
    """BEHAVIOURS 31: visible here, and still in the catalog."""
    message = core("message")
    plan = plan_code_mode([message, core("read")], CONTROLS, required_direct={"message"})
    assert names(plan) == ["exec", "wait", "message"]
    assert CatalogSnapshot.build([message]).get(message.id) is not None


def test_tool_search_controls_are_shown_by_neither_plan():
    """rule 2.4, BEHAVIOURS 30"""
    tools = [core("read"), *TOOL_SEARCH]
    assert names(plan_code_mode(tools, CONTROLS)) == ["exec", "wait"]
    assert names(plan_direct(tools)) == ["read"]


def test_core_coding_tools_are_hidden_like_any_other():
    """BEHAVIOURS 32"""
    tools = [core(name) for name in ("read", "write", "edit", "apply_patch")]
    assert names(plan_code_mode(tools, CONTROLS)) == ["exec", "wait"]


def test_direct_mode_shows_no_control_tools():
    """rule 2.2, BEHAVIOURS 33: without code mode its controls are gone."""
    assert names(plan_direct([*CONTROLS, core("exec"), core("read")])) == ["exec", "read"]


@pytest.mark.parametrize("controls", [(), (EXEC,), (EXEC, EXEC), (EXEC, WAIT, control("more"))])
def test_code_mode_without_its_two_controls_fails_closed(controls):
    """rule 2.2, BEHAVIOURS 33"""
    with pytest.raises(PayloadViolationError, match="exec,wait"):
        plan_code_mode([core("read")], controls)


def test_an_ordinary_tool_cannot_stand_in_for_a_control():
    """rule 2.7"""
    with pytest.raises(PayloadViolationError):
        plan_code_mode([], (core("exec"), WAIT))


def test_wait_is_kept_out_of_progress_and_exec_is_not():
    """BEHAVIOURS 34"""
    plan = plan_code_mode([core("wait", catalog_mode="direct-only")], CONTROLS)
    assert [(tool.name, tool.quiet) for tool in plan.visible] == [("exec", False), ("wait", True)]
    assert not plan_direct([core("wait")].copy()).visible[0].quiet


def test_a_direct_only_tool_cannot_take_a_controls_name():
    """rule 2.6: it is left out, and the operator is told."""
    plan = plan_code_mode([plugin("p", "exec", catalog_mode="direct-only")], CONTROLS)
    assert names(plan) == ["exec", "wait"]
    assert plan.resolve("exec").sourced is EXEC
    assert any("openclaw:p:exec" in line for line in plan.diagnostics)


def test_plans_of_two_runs_share_nothing():
    """rule 2.5, BEHAVIOURS 42"""
    one = plan_code_mode([core("a", catalog_mode="direct-only")], CONTROLS)
    two = plan_code_mode([core("b", catalog_mode="direct-only")], CONTROLS)
    assert one.resolve("b") is None
    assert two.resolve("a") is None


@pytest.mark.parametrize("written", [" exec ", "exec\n", "exec"])
def test_whitespace_around_a_name_is_forgiven(written):
    """CN-08"""
    assert plan_code_mode([core("read")], CONTROLS).resolve(written).sourced is EXEC


@pytest.mark.parametrize("written", ["", "  ", "Exec", "exe", "openclaw:core:read", "read"])
def test_no_other_name_is_guessed(written):
    """CN-08, BEHAVIOURS 35: nothing hidden is reached by a guessed name or id."""
    assert plan_code_mode([core("read")], CONTROLS).resolve(written) is None


def test_provider_names_are_safe_unique_and_lead_to_the_right_tool():
    """CN-09: one name outside the alphabet must not cost the whole request."""
    raw = ["orders.fetch-one", "ops/users list", "поиск", "ok_tool"]
    tools = [mcp("fx", name) for name in raw]
    plan = plan_direct(tools)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name) for tool in plan.visible)
    assert len(plan.allowed_names) == 4
    assert {plan.resolve(n).sourced.mcp.tool for n in plan.allowed_names} == set(raw)
    assert plan.resolve("fx__ok_tool").sourced.tool.name == "ok_tool"
    renamed = " ".join(plan.diagnostics)
    assert [name in renamed for name in raw] == [True, True, True, False]


def test_long_names_that_share_their_beginning_stay_apart():
    """CN-10"""
    tools = [mcp("s" * 40, "t" * 70 + end) for end in ("one", "two")]
    plans = [plan_direct(order) for order in (tools, tools[::-1])]
    assert names(plans[0]) == names(plans[1])
    assert len(set(names(plans[0]))) == 2
    assert max(map(len, names(plans[0]))) <= 64


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_local_tools_with_one_name_core_wins_and_the_other_is_told(order):
    """CN-06"""
    own, other = core("session_status"), plugin("p", "session_status")
    plan = plan_direct([own, other, plugin("p", "more")][::order])
    assert sorted(names(plan)) == ["more", "session_status"]
    assert plan.resolve("session_status").sourced is own
    assert any("openclaw:p:session_status" in line for line in plan.diagnostics)


def test_a_client_tool_may_not_take_a_name_in_direct_mode():
    """CN-07"""
    with pytest.raises(RequestError, match="'web_search' is there already") as caught:
        plan_direct([core("web_search"), client("web_search")])
    assert caught.value.code == "invalid_request_error"


@pytest.mark.parametrize("plan", [plan_direct, lambda tools: plan_code_mode(tools, CONTROLS)])
def test_two_client_tools_with_one_name_are_refused(plan):
    """CN-07"""
    with pytest.raises(RequestError, match="'mine' is given 2 times"):
        plan([client("mine"), client("mine", app="other")])


def test_in_code_mode_a_client_tool_may_have_the_name_of_another():
    """CN-07: it wins the name inside the catalog."""
    plan = plan_code_mode([core("web_search"), client("web_search")], CONTROLS)
    assert names(plan) == ["exec", "wait"]


def test_schemas_are_made_acceptable_to_providers():
    """PP-03, PP-05: `properties` and `items` are there, and no combinator at the root."""
    either = {
        "oneOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "array"}}},
        ]
    }
    plan = plan_direct([mcp("fx", "either", parameters=either), core("n", parameters={})])
    sent = plan.resolve("fx__either").definition.parameters
    assert sent["type"] == "object"
    assert set(sent["properties"]) == {"a", "b"}
    assert "oneOf" not in sent
    assert plan.resolve("n").definition.parameters["properties"] == {}
    assert plan.resolve("fx__either").sourced.tool.parameters is either
