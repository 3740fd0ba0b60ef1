"""`define_tool_plugin`, the builder and `PluginApi`: the authors' door."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from toolcell.errors import CallError, PluginError, ToolDefinitionError
from toolcell.plugin_sdk.activation import activate
from toolcell.plugin_sdk.api import PluginApi
from toolcell.plugin_sdk.builder import build_tool
from toolcell.plugin_sdk.define import ToolPlugin, define_tool_plugin
from toolcell.protocol.scope import RunScope
from toolcell.tools.decorator import tool
from toolcell.tools.tool import ToolContext

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext(
    scope=RunScope(agent_id="main", session_id="s", session_key="k", run_id="r"),
    call_id="c1",
    parent_id=None,
    deadline=None,
    update=lambda _value: None,
)


class Shipment(TypedDict):
    id: str
    paid: bool
    tons: float


class Query(BaseModel):
    limit: int = 5


def list_nothing() -> list[int]:
    return []


def define(**options: Any) -> ToolPlugin:
    return define_tool_plugin(
        id="shipping", name="Shipping", description="Shipment tools.", **options
    )


async def test_the_shape_of_the_contract_builds_a_tool_with_an_output_contract():
    """Contract rule 7.1: plugins declare `outputSchema` with `define_tool_plugin`."""
    rows: list[Shipment] = [{"id": "a", "paid": True, "tons": 2}]

    async def load() -> list[Shipment]:
        return rows

    plugin = define(
        tools=lambda tool: [
            tool(
                name="shipping_list",
                description="List shipments.",
                parameters={"type": "object", "properties": {}, "additionalProperties": False},
                output_schema=list[Shipment],
                execute=load,
                replay_safe=True,
            )
        ]
    )
    (listing,) = activate(plugin).tools
    assert listing.output_schema is not None
    assert listing.output_schema["items"]["additionalProperties"] is False
    assert listing.replay_safe is True
    assert (await listing.execute({}, CONTEXT)).details == rows


async def test_execute_takes_the_arguments_and_the_context_when_it_asks_for_them():
    one = build_tool(name="one", parameters=Query, execute=lambda query: query.limit)
    two = build_tool(
        name="two", parameters={}, execute=lambda args, context: [args, context.call_id]
    )
    assert one.parameters["properties"] == {"limit": {"default": 5, "type": "integer"}}
    assert (await one.execute({}, CONTEXT)).details == 5
    assert (await two.execute({"a": 1}, CONTEXT)).details == [{"a": 1}, "c1"]
    with pytest.raises(CallError, match="limit: "):
        await one.execute({"limit": "many"}, CONTEXT)


async def test_without_parameters_the_signature_is_read():
    def ship(id: str, express: bool = False) -> str:  # noqa: A002
        """Ship it."""
        return f"{id} {express}"

    made = build_tool(name="ship", execute=ship)
    assert made.description == "Ship it."
    assert list(made.parameters["properties"]) == ["id", "express"]
    assert (await made.execute({"id": "x"}, CONTEXT)).details == "x False"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"execute": print}, "name must be text"),
        ({"name": "t"}, "execute must be a function"),
        ({"name": "t", "execute": lambda: 1, "parameters": {"type": "array"}}, "takes one object"),
        ({"name": "t", "execute": lambda: 1, "parameters": 5}, "parameters of tool 't' is 5"),
        (
            {"name": "t", "execute": lambda a, b, c: a + b + c, "parameters": {}},
            "execute must take",
        ),
        ({"name": "t", "execute": lambda: 1, "outputSchema": {}}, "has no option 'outputSchema'"),
    ],
)
def test_a_tool_that_makes_no_sense_is_refused(options, problem):
    with pytest.raises(ToolDefinitionError, match=problem):
        build_tool(**options)


@pytest.mark.parametrize("plugin_id", ["", "Shipping", "a_b", "-a", "a" * 65, "core", "a:b", "a\n"])
def test_a_plugin_id_must_fit_a_catalog_id(plugin_id):
    """Contract rule 4.1: `openclaw:<plugin-id>:<tool>`; `core` is taken."""
    with pytest.raises(PluginError, match="plugin id"):
        define_tool_plugin(id=plugin_id, name="X", description="X")


def test_a_register_function_adds_tools_and_factories():
    """Contract rule 7.1: on a registered tool object or factory."""

    @tool
    def first() -> int:
        return 1

    def second() -> int:
        return 2

    def register(api: PluginApi) -> None:
        api.register_tool(first)
        api.register_tool(second)
        api.register_tool(factory=lambda: [build_tool(name="third", execute=second)])
        api.register_tool(factory=lambda: None)

    activation = activate(define(register=register))
    assert [each.name for each in activation.tools] == ["first", "second", "third"]
    assert activation.tools[1].output_schema == {"type": "integer"}


def test_a_plugin_that_fails_while_loading_is_rolled_back():
    """Registrations are undone on rollback (issue, bad input: broken plugins)."""
    undone: list[str] = []
    kept: list[PluginApi] = []

    def register(api: PluginApi) -> None:
        kept.append(api)
        api.on_unload(lambda: undone.append("a"))
        api.on_unload(lambda: 1 / 0)
        api.on_unload(lambda: undone.append("c"))
        raise ValueError("no key")

    with pytest.raises(PluginError, match="'shipping' failed while it was loaded: ValueError: no"):
        activate(define(register=register))
    assert undone == ["c", "a"]
    with pytest.raises(PluginError, match="register its tools while it loads"):
        kept[0].register_tool(print)


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        (
            lambda tool: [
                tool(name="a", execute=list_nothing),
                tool(name="a", execute=list_nothing),
            ],
            "two tools named",
        ),
        (lambda _tool: None, "tools gave NoneType, not a list"),
        (lambda _tool: 1 / 0, "ZeroDivisionError"),
        (lambda _tool: [3], "takes a function"),
        (lambda _tool: [lambda: 1], "has no name of its own"),
    ],
)
def test_broken_tool_lists_name_the_plugin(tools, problem):
    with pytest.raises(PluginError, match=problem) as caught:
        activate(define(tools=tools))
    assert "shipping" in caught.value.message
