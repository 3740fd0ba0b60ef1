"""The `image` tool: direct-only, for models that see (issue part 4; rule 2.2, rule 4.4)."""

from __future__ import annotations

import base64
import os

import anyio
import pytest

from tests.pictures import png
from tests.sources.core.conftest import call, context
from tests.sources.core.web import page, redirect, serving
from toolcell.base.images import MAX_IMAGE_BYTES
from toolcell.errors import CallError
from toolcell.sources.core.addresses import AddressRules
from toolcell.sources.core.http import LazyHttp
from toolcell.sources.core.seeing import image_tool
from toolcell.tools.content import ImageContent

pytestmark = pytest.mark.anyio


def online(workspace, *allow):
    return image_tool(workspace, LazyHttp(AddressRules(allow)), 5.0)


async def refusal(tool, **arguments) -> CallError:
    with pytest.raises(CallError) as caught:
        await tool.execute(arguments, context())
    return caught.value


def test_it_is_kept_out_of_catalogs_and_from_models_that_do_not_see(workspace):
    tool = image_tool(workspace)
    assert (tool.catalog_mode, tool.needs_vision, tool.replay_safe) == ("direct-only", True, True)
    assert list(tool.parameters["properties"]) == ["path"]


def test_one_that_may_load_addresses_is_not_replay_safe(workspace):
    """rule 3.13: what an address gave may be another thing now."""
    tool = online(workspace)
    assert (tool.catalog_mode, tool.needs_vision, tool.replay_safe) == ("direct-only", True, False)
    assert list(tool.parameters["properties"]) == ["path", "url"]


async def test_an_image_of_the_workspace_is_shown_by_what_its_bytes_say(workspace, root):
    data = png(640, 480)
    (root / "sub" / "not-a.txt").write_bytes(data)
    tool = image_tool(workspace)
    assert await call(tool, path="sub/not-a.txt") == {
        "from": "sub/not-a.txt",
        "mimeType": "image/png",
        "width": 640,
        "height": 480,
        "size": len(data),
    }
    result = await tool.execute({"path": "sub/not-a.txt"}, context())
    told, image = result.content
    assert told.text == f"sub/not-a.txt [image/png, 640x480, {len(data)} bytes]"
    assert image == ImageContent(base64.b64encode(data).decode(), "image/png")
    assert not result.untrusted


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing.png", "missing.png"),
        ("../secret.png", "secret.png"),
        ("link.png", "link.png"),
        ("sub", "'sub' is a directory"),
        ("pipe.png", "pipe.png"),
        ("a.png", "'a.png' cannot be shown: it is no PNG, JPEG, GIF or WebP image."),
        ("cut.png", "'cut.png' cannot be shown: it is a broken image/png."),
        ("wide.png", "it is 9000x1 pixels, a side has at most 8000."),
        (
            "huge.png",
            f"it has {MAX_IMAGE_BYTES + 68} bytes, at most {MAX_IMAGE_BYTES} can be sent.",
        ),
    ],
)
async def test_what_cannot_be_shown_is_an_error_that_says_why(workspace, root, path, says):
    """The same roots as `read`: neither `..` nor a link leads out, and a pipe does not hang."""
    (root.parent / "secret.png").write_bytes(png())
    (root / "link.png").symlink_to(root.parent / "secret.png")
    os.mkfifo(root / "pipe.png")
    (root / "a.png").write_text("I am a PNG")
    (root / "cut.png").write_bytes(png()[:50])
    (root / "wide.png").write_bytes(png(9000, 1))
    (root / "huge.png").write_bytes(png() + bytes(MAX_IMAGE_BYTES))
    with anyio.fail_after(5):
        error = await refusal(image_tool(workspace), path=path)
    assert says in error.message
    assert error.effect == "none"


@pytest.mark.parametrize("given", [{}, {"path": "a.txt", "url": "http://x/"}])
async def test_either_a_path_or_an_address(workspace, given):
    assert (await refusal(online(workspace), **given)).message == "image takes either path or url."


async def test_an_address_is_loaded_where_that_is_allowed(workspace):
    async with serving() as web:
        web.answers["/a"] = redirect("/b.txt")
        web.answers["/b.txt"] = page(png(3, 2), "text/plain")
        tool = online(workspace, "127.0.0.1")
        result = await tool.execute({"url": f"{web.url}/a"}, context())
    assert result.details["from"] == f"{web.url}/b.txt"
    assert (result.details["mimeType"], result.untrusted) == ("image/png", True)
    assert isinstance(result.content[1], ImageContent)
    assert "image/png" in web.asked[0].headers["accept"]


async def test_a_private_address_is_not_reached(workspace):
    """The same checked addresses as `web_fetch`: nothing is asked of this machine."""
    async with serving() as web:
        web.answers["/a"] = page(png(), "image/png")
        error = await refusal(online(workspace), url=f"{web.url}/a")
        assert web.asked == []
    assert "127.0.0.1" in error.message


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (page("gone", status="404 Not Found"), "answered 404, not with an image."),
        (page("<p>", "image/png"), "cannot be shown: it is no PNG"),
        (page(png(extra=bytes(MAX_IMAGE_BYTES)), "image/png"), "has more than 3932160 bytes"),
    ],
)
async def test_an_answer_that_is_no_image_is_an_error(workspace, answer, says):
    async with serving() as web:
        web.answers["/a"] = answer
        error = await refusal(online(workspace, "127.0.0.1"), url=f"{web.url}/a")
    assert says in error.message
