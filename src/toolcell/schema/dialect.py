"""Owns the dialects of JSON Schema that tools really send, brought to the two that are compiled.

Above: the validator. Below: `schema.{kinds,positions}`.
"""

from __future__ import annotations

from typing import Any, Literal

from toolcell.schema.kinds import is_legacy
from toolcell.schema.positions import rewrite

Dialect = Literal["draft-07", "2019-09", "2020-12"]


def dialect_of(schema: Any) -> Dialect:
    """Return the dialect to compile with; a missing or unknown `$schema` means 2020-12."""
    if not isinstance(schema, dict):
        return "2020-12"
    if is_legacy(schema):
        return "draft-07"
    return "2019-09" if "2019-09" in str(schema.get("$schema", "")) else "2020-12"


def modern(schema: Any, dialect: Dialect) -> Any:
    """Return a plain schema with the spellings of other dialects translated.

    OpenAPI's `nullable`, draft 4's boolean `exclusiveMinimum`, and draft 7's list of `items`
    in a schema that does not say it is of draft 7. The names of dialects are dropped.
    """

    def change(members: dict[str, Any]) -> dict[str, Any]:
        members.pop("$schema", None)
        _nullable(members)
        _exclusive(members, "minimum", "exclusiveMinimum")
        _exclusive(members, "maximum", "exclusiveMaximum")
        if dialect == "2020-12" and isinstance(members.get("items"), list):
            members["prefixItems"] = members.pop("items")
            if "additionalItems" in members:
                members["items"] = members.pop("additionalItems")
        return members

    return rewrite(schema, change)


def _nullable(members: dict[str, Any]) -> None:
    if members.get("nullable") is not True:
        return
    kinds = members.get("type")
    listed = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(listed, list) and listed and "null" not in listed:
        members["type"] = [*listed, "null"]


def _exclusive(members: dict[str, Any], limit: str, exclusive: str) -> None:
    if not isinstance(members.get(exclusive), bool):
        return
    if members.pop(exclusive) and limit in members:
        members[exclusive] = members.pop(limit)
