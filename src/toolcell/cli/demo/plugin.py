"""Owns the demo's plugin: 76 real tools with output contracts over the freight company's records.

Above: the demo. Below: `plugin_sdk`, `cli.demo.records`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio

from toolcell.cli.demo.records import TABLES, Fields, Row, Table, rows
from toolcell.plugin_sdk.builder import ToolBuilder
from toolcell.plugin_sdk.define import ToolPlugin, define_tool_plugin
from toolcell.tools.tool import Tool

CREDIT_CHECK_SECONDS = 1.5
"""Longer than the demo's budget for one `exec`, so that the cell is parked and resumed."""

_ID = {"type": "string"}


class Store:
    """The company's records, in memory."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Row]] = {
            table.noun: {row["id"]: row for row in rows(table)} for table in TABLES
        }

    def listing(self, noun: str, arguments: Mapping[str, Any]) -> list[Row]:
        """Return the rows whose fields equal the given ones."""
        found = self.tables[noun].values()
        return [dict(row) for row in found if all(row[k] == v for k, v in arguments.items())]

    def get(self, noun: str, row_id: str) -> Row:
        """Return one row.

        Raises:
            LookupError: there is none with this id.
        """
        row = self.tables[noun].get(row_id)
        if row is None:
            msg = f"there is no {noun} {row_id!r}"
            raise LookupError(msg)
        return dict(row)

    def put(self, noun: str, row: Row) -> Row:
        """Store a row and return it."""
        self.tables[noun][row["id"]] = dict(row)
        return row


def demo_plugin() -> ToolPlugin:
    """Return the plugin, over fresh records."""
    store = Store()
    return define_tool_plugin(
        id="freight",
        name="Freight",
        description="Records of a small freight company.",
        tools=lambda tool: [
            *(made for table in TABLES for made in _table_tools(tool, store, table)),
            _credit_check(tool),
        ],
    )


def _table_tools(tool: ToolBuilder, store: Store, table: Table) -> list[Tool]:
    noun, fields = table.noun, table.fields
    row = _closed({"id": "string", **fields})

    def make(verb: str, text: str, parameters: Any, output: Any, body: Callable[..., Any]) -> Tool:
        return tool(
            name=f"{noun}_{verb}",
            description=text,
            parameters=parameters,
            output_schema=output,
            execute=body,
            replay_safe=verb in {"list", "get"},
        )

    def update(arguments: Mapping[str, Any]) -> Row:
        return store.put(noun, {**store.get(noun, arguments["id"]), **arguments})

    def create(arguments: Mapping[str, Any]) -> Row:
        return store.put(noun, {"id": f"{noun}-{len(store.tables[noun]) + 1}", **arguments})

    def archive(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"archived": store.tables[noun].pop(arguments["id"], None) is not None}

    only_id = _closed({"id": "string"})
    return [
        make(
            "list",
            f"List {table.plural}, all or those whose fields equal the given ones.",
            _closed(fields, required=[]),
            {"type": "array", "items": row},
            lambda arguments: store.listing(noun, arguments),
        ),
        make(
            "get",
            f"Get one of the {table.plural} by its id.",
            only_id,
            row,
            lambda arguments: store.get(noun, arguments["id"]),
        ),
        make("create", f"Create one of the {table.plural}.", _closed(fields), row, create),
        make(
            "update",
            f"Update fields of one of the {table.plural}.",
            _closed({"id": "string", **fields}, required=["id"]),
            row,
            update,
        ),
        make(
            "archive",
            f"Archive one of the {table.plural} by its id.",
            only_id,
            _closed({"archived": "boolean"}),
            archive,
        ),
    ]


def _credit_check(tool: ToolBuilder) -> Tool:
    async def check(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        await anyio.sleep(CREDIT_CHECK_SECONDS)
        return [
            {"customer": each, "good": not each.endswith("4")} for each in arguments["customers"]
        ]

    return tool(
        name="credit_check",
        description="Ask the bank about the credit of customers; takes a while.",
        parameters={
            "type": "object",
            "properties": {"customers": {"type": "array", "items": _ID}},
            "required": ["customers"],
            "additionalProperties": False,
        },
        output_schema={
            "type": "array",
            "items": _closed({"customer": "string", "good": "boolean"}),
        },
        execute=check,
    )


def _closed(fields: Fields, required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields) if required is None else required,
        "additionalProperties": False,
    }
