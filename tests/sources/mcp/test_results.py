"""MCP results as guest code and models see them."""

import json
from typing import Any

from toolcell.sources.mcp.results import NO_STRUCTURED, tool_result
from toolcell.tools.content import ImageContent, TextContent


def details(raw: dict[str, Any], **more: Any) -> Any:
    return tool_result(raw, structured=more.get("structured", False)).details


def block(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def test_the_declared_shape_is_the_real_one() -> None:
    """BR-11, rule 5.1: `content`, `structuredContent?`, `isError?`; no plain value is unpacked."""
    assert details({"content": [block('[{"id":1}]')], "resultType": "complete", "ttlMs": 1}) == {
        "content": [block('[{"id":1}]')]
    }


def test_text_and_structure_are_both_kept() -> None:
    """MC-06: neither is dropped, in the guest and in what a model reads."""
    result = tool_result(
        {"content": [block("saved")], "structuredContent": {"ticket": "T-9"}}, structured=True
    )
    assert result.details == {"content": [block("saved")], "structuredContent": {"ticket": "T-9"}}
    assert result.content == (TextContent("saved"), TextContent('{"ticket":"T-9"}'))


def test_structure_that_the_text_already_holds_is_not_shown_twice() -> None:
    """MC-06: servers repeat structured content as text; a model need not pay for both."""
    result = tool_result(
        {"content": [block('{ "a": [1] }')], "structuredContent": {"a": [1]}}, structured=True
    )
    assert result.content == (TextContent('{ "a": [1] }'),)


def test_an_error_of_the_tool_is_a_value() -> None:
    """MC-07, BEHAVIOURS 241: `isError` is data; nothing is raised and there is no `details` key."""
    result = tool_result({"content": [block("nope")], "isError": True}, structured=True)
    assert result.is_error
    assert result.details == {"content": [block("nope")], "isError": True}
    assert result.untrusted


def test_missing_structure_is_a_warning_and_the_content_stays() -> None:
    """MC-09, rule 7.3: the documented choice: the call's content comes back with a warning."""
    result = tool_result({"content": [block("moved")]}, structured=True)
    assert result.details == {"content": [block("moved")], "warning": NO_STRUCTURED}
    assert result.content[0] == TextContent("moved")
    assert "sent none" in result.content[1].text
    assert "warning" not in details({"content": [block("moved")]})


def test_private_metadata_and_broken_blocks_never_cross() -> None:
    """MC-13: no canary anywhere; the well-formed block is intact."""
    secret = {"secret": "CANARY"}
    result = tool_result(
        {
            "_meta": secret,
            "other": secret,
            "content": [
                block("fine", _meta=secret),
                {"type": "image", **secret},
                {"type": "text", "text": 3, **secret},
                {"type": "new-kind", **secret},
                "CANARY",
                {"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": secret}},
                {"type": "resource_link", "uri": "a:b", "name": "n", "_meta": secret},
                {"type": ["text"], "text": "CANARY"},
            ],
        },
        structured=False,
    )
    assert "CANARY" not in json.dumps(result.to_dict())
    assert result.details["content"][0] == block("fine")
    assert len(result.details["content"]) == 3
    assert result.details["warning"] == "5 malformed content block(s) left out"


def test_bytes_become_a_description() -> None:
    """rule 3.11, BEHAVIOURS 241: no binary in the guest; a model still sees the picture."""
    result = tool_result(
        {
            "content": [
                {"type": "image", "data": "QUJD", "mimeType": "image/png"},
                {"type": "audio", "data": "QUJDRA==", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "a:b", "blob": "QUI="}},
            ]
        },
        structured=False,
    )
    image, audio, resource = result.details["content"]
    assert image == {
        "type": "image",
        "mimeType": "image/png",
        "bytes": 3,
        "description": "[image/png, 3 bytes, not included]",
    }
    assert audio["bytes"] == 4
    assert (
        resource["resource"]["description"] == "[application/octet-stream, 2 bytes, not included]"
    )
    assert result.content[0] == ImageContent(data="QUJD", mime_type="image/png")
    assert "QUJD" not in json.dumps(result.details)


def test_a_result_without_content_is_an_empty_one() -> None:
    """MC-13: a result that breaks the protocol is still a result."""
    assert details({}) == {"content": []}
    assert details({"content": "CANARY"})["warning"] == "1 malformed content block(s) left out"
    assert details({"content": None, "structuredContent": {"a": 1}}) == {
        "content": [],
        "structuredContent": {"a": 1},
    }
