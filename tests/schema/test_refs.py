"""Local references: RFC 6901 and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from toolcell.schema.hints import input_hint
from toolcell.schema.refs import resolve

ROOT: dict[str, Any] = {
    "definitions": {"a/b": "slash", "m~n": "tilde", "x y": "blank", "%": "percent", "00": "zeros"},
    "prefixItems": ["zero", "one"],
    "": "empty",
    "$defs": {
        "named": {"$anchor": "here"},
        "other": {"$id": "https://example.com/o", "$defs": {"k": "inner"}},
    },
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#/definitions/a~1b", "slash"),
        ("#/definitions/m~0n", "tilde"),
        ("#/definitions/x%20y", "blank"),
        ("#/definitions/a%7E1b", "slash"),
        ("#/definitions/%25", "percent"),
        ("#%2Fdefinitions/a~1b", "slash"),
        ("#/definitions/00", "zeros"),
        ("#/prefixItems/0", "zero"),
        ("#/prefixItems/1", "one"),
        ("#/", "empty"),
        ("#", ROOT),
        ("#here", ROOT["$defs"]["named"]),
    ],
)
def test_pointers_resolve_by_rfc_6901(reference: str, target: Any) -> None:
    """TS-04, TS-05."""
    found = resolve(ROOT, reference)
    assert found is not None
    assert found.schema == target


@pytest.mark.parametrize(
    "reference",
    [
        "#/prefixItems/0x0",
        "#/prefixItems/00",
        "#/prefixItems/0e0",
        "#/prefixItems/-1",
        "#/prefixItems/+0",
        "#/prefixItems/\u0660",
        "#/prefixItems/2",
        "#/prefixItems/-",
        "#/definitions/a~2b",
        "#/definitions/%FF",
        "#/nowhere",
        "#gone",
        "https://example.com/x",
        "file:///etc/passwd",
        "other.json#/a",
        "",
        7,
        None,
        "#/" + "a/" * 5000,
    ],
)
def test_what_is_no_local_pointer_leads_to_nothing(reference: Any) -> None:
    """TS-05: array indices are canonical; references never leave the document."""
    assert resolve(ROOT, reference) is None


def test_references_inside_an_embedded_document_start_from_it() -> None:
    """TS-04: `$id` makes a document of its own."""
    found = resolve(ROOT, "#/$defs/other/$defs/k")
    assert found is not None
    assert found.root is ROOT["$defs"]["other"]


@pytest.mark.parametrize(
    ("reference", "hint"),
    [("0", "number"), ("0x0", "unknown"), ("00", "unknown"), ("0e0", "unknown")],
)
def test_only_canonical_indices_are_types(reference: str, hint: str) -> None:
    """TS-05."""
    schema = {
        "type": "object",
        "prefixItems": [{"type": "number"}, {"type": "string"}],
        "properties": {"v": {"$ref": f"#/prefixItems/{reference}"}},
        "required": ["v"],
    }
    assert input_hint(schema) == f"{{ v: {hint} }}"
