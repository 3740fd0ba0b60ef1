"""`@tool`: what a function's signature becomes, and how a call goes through it."""

from __future__ import annotations

import functools
import threading
import typing
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

import anyio
import jsonschema_rs
import pytest
from pydantic import BaseModel, Field

from toolcell.errors import CallError, ToolDefinitionError
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import MISSING, ImageContent, TextContent, ToolResult
from toolcell.tools.decorator import FunctionTool, as_tool, tool
from toolcell.tools.tool import Tool, ToolContext

pytestmark = pytest.mark.anyio

SCOPE = RunScope(agent_id="main", session_id="s", session_key="k", run_id="r")
CONTEXT = ToolContext(
    scope=SCOPE, call_id="c1", parent_id=None, deadline=None, update=lambda _value: None
)


async def call(made: Tool, **arguments: Any) -> Any:
    return (await made.execute(arguments, CONTEXT)).details


@dataclass
class Point:
    x: int
    y: float = 0.5


class Shipment(typing.TypedDict):
    id: str
    paid: bool
    note: typing.NotRequired[str]


class Order(BaseModel):
    at: Point
    when: datetime | None = None


class Color(Enum):
    RED = "red"
    BLUE = "blue"


def test_the_parameters_become_a_closed_schema_in_their_order():
    """Issue part 4: schema from signature, type hints and defaults."""

    @tool
    def book(
        key: str,
        count: Annotated[int, Field(ge=1, le=50)],
        color: Color = Color.RED,
        mode: Literal["drip", "flood"] = "drip",
        note: str | None = None,
        page: int = Field(3, description="Which page."),
    ) -> None:
        """Book it."""

    assert book.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["key", "count"],
        "properties": {
            "key": {"type": "string"},
            "count": {"type": "integer", "minimum": 1, "maximum": 50},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "mode": {"type": "string", "enum": ["drip", "flood"], "default": "drip"},
            "note": {"type": ["string", "null"], "default": None},
            "page": {"type": "integer", "default": 3, "description": "Which page."},
        },
    }


def test_nested_types_are_written_out_and_closed():
    """Contract rule 7.2, BEHAVIOURS 276: a `$ref` would cost the compact hint."""

    @tool
    def place(order: Order, shipments: list[Shipment]) -> None: ...

    text = str(place.parameters)
    assert "$ref" not in text
    assert "title" not in text
    order = place.parameters["properties"]["order"]
    assert order["additionalProperties"] is False
    assert order["properties"]["at"]["required"] == ["x"]
    shipment = place.parameters["properties"]["shipments"]["items"]
    assert shipment["required"] == ["id", "paid"]
    assert shipment["additionalProperties"] is False


@dataclass
class Tree:
    name: str
    children: list[Tree]


def test_a_type_that_refers_to_itself_keeps_its_reference():
    @tool
    def plant(tree: Tree, at: Point) -> None: ...

    assert plant.parameters["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert list(plant.parameters["$defs"]) == ["Tree"]
    tree = {"name": "a", "children": [{"name": "b", "children": []}]}
    assert jsonschema_rs.is_valid(dict(plant.parameters), {"tree": tree, "at": {"x": 1}})


@pytest.mark.parametrize(
    "sections",
    [
        "Args:\n        city: Where\n            to look.\n",
        "Parameters\n    ----------\n    city : str\n        Where to look.\n",
        ":param city: Where to look.\n",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_descriptions_come_from_the_docstring(sections):
    def weather(city: str) -> str:
        return city

    weather.__doc__ = f"Tell the weather.\n\n    Of today.\n\n    {sections}    "
    made = tool(weather)
    assert made.description == "Tell the weather.\n\nOf today."
    assert made.parameters["properties"]["city"]["description"] == "Where to look."


def test_the_options_beat_what_was_read():
    """Contract rule 2.2: `catalogMode`; BEHAVIOURS 191: order; rule 3.13: replay safety."""

    @tool(
        name="find it",
        description="Other.",
        label="Find",
        output_schema={"type": "array"},
        catalog_mode="direct-only",
        execution_mode="sequential",
        replay_safe=True,
    )
    def find() -> list[int]:
        """Doc."""
        return []

    assert (find.name, find.description, find.label) == ("find it", "Other.", "Find")
    assert find.output_schema == {"type": "array"}
    assert (find.catalog_mode, find.execution_mode) == ("direct-only", "sequential")
    assert find.replay_safe is True


@pytest.mark.parametrize(
    ("returns", "schema"),
    [
        (float, {"type": "number"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (str | None, {"type": ["string", "null"]}),
        (None, {"type": "null"}),
        (
            Shipment,
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "paid"],
                "properties": {
                    "id": {"type": "string"},
                    "paid": {"type": "boolean"},
                    "note": {"type": "string"},
                },
            },
        ),
        (Any, None),
        (dict, None),
        (dict[str, Any], None),
        (ToolResult, None),
        (ImageContent, None),
    ],
)
def test_the_return_type_becomes_the_output_schema_when_it_is_stable(returns, schema):
    """Contract rule 7.1: `outputSchema` describes `details`; TS-12: a closed array of a record."""

    def give():
        raise NotImplementedError

    give.__annotations__["return"] = returns
    assert tool(give).output_schema == schema


def test_fields_that_are_always_written_are_required_in_the_output():
    """Contract rule 7.1: every variant, exactly; a default is present in what is written."""

    @tool
    def where() -> Point:
        return Point(1)

    assert where.output_schema is not None
    assert where.output_schema["required"] == ["x", "y"]


async def test_arguments_arrive_as_the_annotated_types():
    seen: list[Any] = []

    @tool
    async def take(at: Point, order: Order, color: Color, when: datetime) -> str:
        seen.extend([at, order, color, when])
        return "ok"

    details = await call(
        take, at={"x": 1}, order={"at": {"x": 2}}, color="blue", when="2026-05-09T14:00:00Z"
    )
    assert details == "ok"
    assert [type(value).__name__ for value in seen] == ["Point", "Order", "Color", "datetime"]


async def test_arguments_that_do_not_fit_are_refused_before_the_body():
    """BEHAVIOURS 148: the guest reads `code`; nothing ran, so the effect is `none`."""
    ran: list[int] = []

    @tool
    def book(count: Annotated[int, Field(ge=1)]) -> None:
        ran.append(count)

    with pytest.raises(CallError, match=r"Tool 'book' got arguments .*count: .*greater") as caught:
        await call(book, count=0)
    assert (caught.value.code, caught.value.effect, ran) == ("invalid_input", "none", [])


async def test_the_context_is_handed_in_and_hidden():
    @tool
    def who(name: str, *, context: ToolContext) -> str:
        return f"{name} in {context.scope.session_id}"

    assert list(who.parameters["properties"]) == ["name"]
    assert await call(who, name="Ada") == "Ada in s"


async def test_positional_only_parameters_and_their_defaults_work():
    @tool
    def add(a: int, b: int = 2, /, c: int = 3) -> int:
        return a * 100 + b * 10 + c

    assert await call(add, a=1) == 123
    assert await call(add, a=1, c=9) == 129


async def test_a_decorated_function_is_still_a_function():
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    assert isinstance(add, FunctionTool)
    assert add(2, 3) == 5
    assert add.function(2, b=3) == 5


async def test_methods_partials_and_callable_objects_become_tools():
    class Shop:
        def price(self, item: str) -> int:
            return len(item)

        async def __call__(self, item: str) -> int:
            return self.price(item)

    def scaled(value: int, factor: int) -> int:
        return value * factor

    assert await call(tool(Shop().price), item="abc") == 3
    assert await call(tool(Shop(), name="shop"), item="abcd") == 4
    assert await call(tool(functools.partial(scaled, factor=3), name="triple"), value=2) == 6
    assert as_tool(tool(Shop().price)).name == "price"
    assert as_tool(scaled).name == "scaled"


async def test_sync_functions_run_off_the_event_loop():
    """DESIGN, Concurrency: sync tools run in their own pool."""

    @tool
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await call(where) is False


async def test_a_sync_function_may_run_an_event_loop_of_its_own():
    async def inner() -> int:
        return 7

    @tool
    def outer() -> int:
        return anyio.run(inner)

    assert await call(outer) == 7


async def test_results_carry_details_and_text():
    @tool
    def where() -> Point:
        return Point(1)

    result = await where.execute({}, CONTEXT)
    assert result == ToolResult(
        content=(TextContent('{"x":1,"y":0.5}'),), details={"x": 1, "y": 0.5}
    )

    @tool
    def say() -> str:
        return "plain"

    assert (await say.execute({}, CONTEXT)).content == (TextContent("plain"),)


async def test_a_tool_may_give_its_own_result_or_an_image():
    own = ToolResult(details={"a": 1}, is_error=True)

    @tool
    def raw() -> ToolResult:
        return own

    @tool(catalog_mode="direct-only")
    def look() -> ImageContent:
        return ImageContent("aGk=", "image/png")

    assert await raw.execute({}, CONTEXT) is own
    image = await look.execute({}, CONTEXT)
    assert image.content == (ImageContent("aGk=", "image/png"),)
    assert image.details is MISSING


async def test_a_result_that_breaks_its_declared_type_is_an_error_without_the_value():
    """Contract rule 7.1: a mismatch fails without printing the value."""

    @tool
    def count() -> list[int]:
        return ["secret-word"]  # type: ignore[list-item]

    with pytest.raises(CallError, match="does not match the declared return type") as caught:
        await call(count)
    assert "secret-word" not in str(caught.value)


async def test_what_a_tool_raises_is_passed_on():
    @tool
    async def fail() -> None:
        raise LookupError("no such city")

    with pytest.raises(LookupError, match="no such city"):
        await call(fail)


async def test_a_tool_cannot_end_the_process():
    """Issue, bad input: tools that raise get an error that names them."""

    @tool
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(CallError, match="Tool 'leave' tried to end the process"):
        await call(leave)


async def test_a_cancellation_from_inside_is_a_failure_and_one_from_outside_passes():
    """DESIGN, Concurrency: cancellation is never swallowed, nothing hangs."""

    @tool
    async def cancels_itself() -> None:
        raise anyio.get_cancelled_exc_class()

    with pytest.raises(CallError, match="was cancelled by something it awaited"):
        await call(cancels_itself)

    @tool
    async def waits() -> None:
        await anyio.sleep_forever()

    with anyio.move_on_after(0.01) as scope:
        await call(waits)
    assert scope.cancelled_caught


class Unknown:
    pass


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f(a: int, *rest: int): ...", r"'f': parameter '\*rest' takes any number"),
        ("def f(**rest): ...", r"parameter '\*\*rest' takes any number"),
        ("def f(a: Missing): ...", "an annotation names 'Missing'"),
        ("def f(ok: int, a: Unknown): ...", r"parameter 'a' has no JSON Schema: .*Unknown"),
        ("def f(a: bytes): ...", "parameter 'a' has no JSON Schema: bytes"),
        ("def f() -> Unknown: ...", "'f' returns .*Unknown.*which has no JSON Schema"),
        ("def f() -> list[bytes]: ...", "bytes have no JSON form"),
        ("def f() -> Iterator[int]: ...", "Return a list"),
        ("def f():\n    yield 1", "'f' is a generator"),
        ("async def f():\n    yield 1", "'f' is a generator"),
        ("def f(self, a: int): ...", "unbound method"),
        ("def f(a: ToolContext, b: ToolContext): ...", "both take the ToolContext"),
        ("f = lambda: 1", "has no name of its own"),
        ("f = 3", "takes a function"),
        ("class f: ...", "takes a function"),
    ],
)
def test_functions_that_cannot_be_tools_are_refused_where_they_are_decorated(source, problem):
    """Issue, bad input: an error that names the place and the remedy."""
    names: dict[str, Any] = {
        "Unknown": Unknown,
        "ToolContext": ToolContext,
        "Iterator": typing.Iterator,
    }
    exec(source, names)  # noqa: S102 - the test's own text
    with pytest.raises(ToolDefinitionError, match=problem):
        tool(names["f"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": ""}, "not empty"),
        ({"name": "x" * 129}, "129 characters, at most 128"),
        ({"catalog_mode": "hidden"}, "catalog_mode='hidden' must be one of catalog, direct-only"),
        ({"execution_mode": "serial"}, "must be one of parallel, sequential"),
        ({"output_schema": 3}, "output_schema of tool 'f' is 3"),
        ({"retries": 3}, "@tool has no option 'retries'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, problem):
    def f() -> None: ...

    with pytest.raises(ToolDefinitionError, match=problem):
        tool(f, **options)


def test_any_text_is_a_name():
    """BEHAVIOURS 168: guest names are made elsewhere; a tool keeps the name its author wrote."""

    @tool(name="日本 tool: 1/2")
    def f() -> None: ...

    assert f.name == "日本 tool: 1/2"


def test_a_type_may_stand_for_an_output_schema():
    @tool(output_schema=list[Shipment])
    def listing() -> Any: ...

    assert listing.output_schema is not None
    assert listing.output_schema["items"]["additionalProperties"] is False


def test_string_annotations_may_name_local_types():
    class Local(BaseModel):
        a: int

    @tool
    def f(value: Local) -> Local:
        return value

    assert f.parameters["properties"]["value"]["properties"] == {"a": {"type": "integer"}}
