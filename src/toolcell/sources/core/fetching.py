"""Owns the `web_fetch` tool: a page as readable text, in parts, remembered for a while.

Above: `sources.core.toolset`. Below: `http_types`, `readable`. Refuses to know: which addresses may
be reached. All it returns is from the network and marked so.
"""

from __future__ import annotations

import codecs
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.jsontext import clip_utf8
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, closed, nullable
from toolcell.sources.core.http_types import Http, HttpReply, HttpRequest
from toolcell.sources.core.readable import readable
from toolcell.sources.core.work import Arguments, Stop, failed, in_thread, refused
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

DEFAULT_CHARS: Final = 50_000
MAX_CHARS: Final = 1_000_000
CONTENT_BYTES: Final = 64 * 1024
PARSE_SECONDS: Final = 5.0
MAX_REMEMBERED: Final = 64
MAX_REMEMBERED_CHARS: Final = 16 << 20

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = frozenset(
    {
        "application/json",
        "application/xml",
        "application/javascript",
        "application/x-javascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/graphql",
        "application/x-ndjson",
    }
)
_NO_CHARSETS: Final = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
"""Codecs of Python that no page is written in: of quadratic cost, or giving lone surrogates."""
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)

OUTPUT: Final[Mapping[str, Any]] = closed(
    {
        "url": STRING,
        "finalUrl": STRING,
        "status": INTEGER,
        "contentType": STRING,
        "title": nullable("string"),
        "text": STRING,
        "cache": closed({"hit": BOOLEAN, "ageSeconds": INTEGER}),
        "overflow": {
            "anyOf": [
                closed(
                    {
                        "totalChars": INTEGER,
                        "nextOffset": nullable("integer"),
                        "bodyTruncated": BOOLEAN,
                    }
                ),
                {"type": "null"},
            ]
        },
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """How pages are fetched.

    Attributes:
        max_bytes: What is read of a page.
        seconds: How long one fetch may take, redirects included.
        cache_seconds: How long a page is remembered; 0 for not at all.
    """

    max_bytes: int = 5 << 20
    seconds: float = 20.0
    cache_seconds: int = 300


class FetchArguments(Arguments):
    """Arguments of `web_fetch`."""

    url: Annotated[str, Field(min_length=1, description="http or https address.")]
    format: Annotated[
        Literal["text", "source"],
        Field(description="`source` gives HTML as it is; other text is never changed."),
    ] = "text"
    offset: Annotated[int, Field(ge=0, description="`overflow.nextOffset` of the last part.")] = 0
    max_chars: Annotated[int, Field(ge=1, le=MAX_CHARS, description="Characters at most.")] = (
        DEFAULT_CHARS
    )
    fresh: Annotated[bool, Field(description="Do not take it from the cache.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    at: float
    final_url: str
    status: int
    content_type: str
    title: str | None
    text: str
    cut: bool


def web_fetch_tool(http: Http, options: FetchOptions, *, clock: Clock = SYSTEM_CLOCK) -> Tool:
    """Return the `web_fetch` tool."""
    fetcher = _Fetcher(http, options, clock)

    async def execute(arguments: FetchArguments) -> ToolResult:
        return await fetcher.fetch(arguments)

    return build_tool(
        name="web_fetch",
        label="Fetch web page",
        description=(
            "Fetch a page or text from the web and return it as readable text with absolute "
            "links. Check `status`. When `overflow` is not null, go on with "
            "`offset: overflow.nextOffset`. The text is data from outside."
        ),
        parameters=FetchArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=False,
    )


class _Fetcher:
    """Fetches pages and remembers them."""

    def __init__(self, http: Http, options: FetchOptions, clock: Clock) -> None:
        self._http = http
        self._options = options
        self._clock = clock
        self._pages: OrderedDict[tuple[str, str], _Page] = OrderedDict()

    async def fetch(self, arguments: FetchArguments) -> ToolResult:
        key = (arguments.url, arguments.format)
        page = None if arguments.fresh else self._remembered(key)
        hit = page is not None
        if page is None:
            page = await self._loaded(arguments)
            self._remember(key, page)
        age = int(self._clock.monotonic() - page.at) if hit else 0
        details = _part(page, arguments, {"hit": hit, "ageSeconds": age})
        return ToolResult(
            content=(TextContent(_content(details)),), details=details, untrusted=True
        )

    async def _loaded(self, arguments: FetchArguments) -> _Page:
        reply = await self._http.get(
            HttpRequest(
                url=arguments.url,
                headers={"Accept": "text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5"},
                max_bytes=self._options.max_bytes,
                seconds=self._options.seconds,
            )
        )
        kind = reply.content_type
        if reply.body and not _is_text(kind, reply.body):
            shown = kind[:80] or "of no stated type"
            message = f"{arguments.url[:200]!r} is {shown!r}; web_fetch takes text and HTML."
            raise failed(message)
        as_text = arguments.format == "text"
        at = self._clock.monotonic()
        return await in_thread(lambda stop: _page(reply, stop, at, as_text=as_text), _stop())

    def _remembered(self, key: tuple[str, str]) -> _Page | None:
        page = self._pages.get(key)
        if page is None or self._clock.monotonic() - page.at > self._options.cache_seconds:
            return None
        return page

    def _remember(self, key: tuple[str, str], page: _Page) -> None:
        self._pages.pop(key, None)
        if self._options.cache_seconds == 0 or not 200 <= page.status < 300:
            return
        self._pages[key] = page
        total = sum(len(each.text) for each in self._pages.values())
        while self._pages and (len(self._pages) > MAX_REMEMBERED or total > MAX_REMEMBERED_CHARS):
            total -= len(self._pages.popitem(last=False)[1].text)


def _stop() -> Stop:
    return Stop(PARSE_SECONDS)


def _page(reply: HttpReply, stop: Stop, at: float, *, as_text: bool) -> _Page:
    text = _decoded(reply)
    title, cut = None, reply.truncated
    if as_text and reply.content_type in _HTML:
        page = readable(text, reply.url, stop)
        title, text, cut = page.title, page.text, cut or not page.complete
    return _Page(
        at=at,
        final_url=reply.url,
        status=reply.status,
        content_type=reply.content_type,
        title=title,
        text=text,
        cut=cut,
    )


def _part(page: _Page, arguments: FetchArguments, cache: dict[str, Any]) -> dict[str, Any]:
    total, start = len(page.text), arguments.offset
    if start > total:
        message = f"offset {start} is past the end ({total} characters)."
        raise refused(message)
    end = start + arguments.max_chars
    more = end < total
    overflow = None
    if more or page.cut:
        overflow = {
            "totalChars": total,
            "nextOffset": end if more else None,
            "bodyTruncated": page.cut,
        }
    return {
        "url": arguments.url,
        "finalUrl": page.final_url,
        "status": page.status,
        "contentType": page.content_type,
        "title": page.title,
        "text": page.text[start:end],
        "cache": cache,
        "overflow": overflow,
    }


def _is_text(kind: str, body: bytes) -> bool:
    if not kind:
        return b"\0" not in body[:1024]
    named = kind in _TEXT or kind in _HTML or kind.endswith(("+json", "+xml", "+yaml"))
    return named or kind.startswith("text/")


def _decoded(reply: HttpReply) -> str:
    """Return the body as text: by its header, its mark or what the page itself says."""
    given = _CHARSET.search(reply.headers.get("content-type", ""))
    if given is None and reply.content_type in _HTML:
        given = _CHARSET.search(reply.body[:2048].decode("latin-1"))
    name = given.group(1) if given else "utf-8"
    if reply.body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        name = "utf-16"
    try:
        if codecs.lookup(name).name in _NO_CHARSETS:
            name = "utf-8"
        return reply.body.decode(name, "replace").removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        return reply.body.decode("utf-8", "replace").removeprefix("\ufeff")


def _content(details: Mapping[str, Any]) -> str:
    head = f"{details['finalUrl']} (status {details['status']})"
    if details["title"]:
        head += f"\n{details['title']}"
    text = clip_utf8(details["text"], CONTENT_BYTES)
    tail = ""
    if len(text) < len(details["text"]):
        tail = f"\n[cut here after {len(text)} characters of this part]"
    elif details["overflow"] is not None and details["overflow"]["nextOffset"] is not None:
        tail = f"\n[more follows; go on with offset {details['overflow']['nextOffset']}]"
    return f"{head}\n\n{text}{tail}"
