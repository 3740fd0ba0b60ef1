"""Owns the words of search engines: the request of a question, and what an answer holds.

Above: web_search. Below: `html_tokens`. Refuses to know: the network. Bad shapes raise ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlencode

from toolcell.errors import ConfigError
from toolcell.sources.core.html_tokens import unescaped

BRAVE_URL: Final = "https://api.search.brave.com/res/v1/web/search"
MAX_URL: Final = 2048
"""An address that is longer is no result: half of it would lead elsewhere."""
MAX_TITLE: Final = 300
MAX_SNIPPET: Final = 1500
MAX_ANSWER: Final = 4000
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,100}>")
_SPACE: Final = re.compile(r"\s+")
_FRESHNESS: Final = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}

Since = Literal["day", "week", "month", "year"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked."""

    query: str
    limit: int
    language: str | None = None
    since: Since | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One page that was found; `published` is as the engine writes it."""

    title: str
    url: str
    snippet: str
    published: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Pages, best first, and perhaps a direct answer."""

    hits: tuple[Hit, ...]
    answer: str | None = None


class Engine(Protocol):
    """Speaks one engine's language."""

    @property
    def name(self) -> str:
        """What it is called in results."""
        ...

    def request(self, question: Question) -> tuple[str, Mapping[str, str]]:
        """Return the address and the headers of a search."""
        ...

    def read(self, body: Any) -> Found:
        """Return what an answer holds; raises ValueError when it has another shape."""
        ...


class SearXng:
    """A SearXNG server, whose JSON format must be turned on in its settings."""

    name = "searxng"

    def __init__(self, base_url: str | None, api_key: str | None = None) -> None:
        """Raises `ConfigError` without an address."""
        if not base_url:
            raise ConfigError("searxng needs an address", path="tools.web.search.baseUrl")
        self._base = base_url.rstrip("/")
        self._key = api_key

    def request(self, question: Question) -> tuple[str, Mapping[str, str]]:
        """Return the address and the headers of a search."""
        query = {"q": question.query, "format": "json"}
        if question.language:
            query["language"] = question.language
        if question.since:
            query["time_range"] = question.since
        headers = {"Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return f"{self._base}/search?{urlencode(query)}", headers

    def read(self, body: Any) -> Found:
        """Return what an answer holds; raises ValueError when it has another shape."""
        results = _list(body, "results")
        given = body.get("answers")
        answers = [_answer(each) for each in given] if isinstance(given, list) else []
        return Found(
            hits=tuple(hit for each in results if (hit := _hit(each, "content", "publishedDate"))),
            answer=_text("\n".join(filter(None, answers)), MAX_ANSWER) or None,
        )


class Brave:
    """The Brave Search API."""

    name = "brave"

    def __init__(self, base_url: str | None, api_key: str | None) -> None:
        """Raises `ConfigError` without a key."""
        if not api_key:
            raise ConfigError("brave needs a key", path="tools.web.search.apiKey")
        self._url = base_url or BRAVE_URL
        self._key = api_key

    def request(self, question: Question) -> tuple[str, Mapping[str, str]]:
        """Return the address and the headers of a search."""
        query = {"q": question.query[:400], "count": str(question.limit)}
        if question.language:
            query["search_lang"] = question.language.split("-")[0]
        if question.since:
            query["freshness"] = _FRESHNESS[question.since]
        headers = {"Accept": "application/json", "X-Subscription-Token": self._key}
        return f"{self._url}?{urlencode(query)}", headers

    def read(self, body: Any) -> Found:
        """Return what an answer holds; raises ValueError when it has another shape."""
        if not isinstance(body, dict) or ("type" not in body and "web" not in body):
            raise ValueError("no search response")
        web = body.get("web")
        results = [] if web is None else _list(web, "results")
        return Found(
            hits=tuple(hit for each in results if (hit := _hit(each, "description", "age")))
        )


ENGINES: Final = {"searxng": SearXng, "brave": Brave}


def _list(body: Any, key: str) -> list[Any]:
    found = body.get(key) if isinstance(body, dict) else None
    if not isinstance(found, list):
        message = f"no list {key!r}"
        raise ValueError(message)  # noqa: TRY004 - the one error of `read`
    return found


def _hit(item: Any, snippet: str, published: str) -> Hit | None:
    """Return a hit; None for one without an address of the web."""
    url = item.get("url") if isinstance(item, dict) else None
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    if len(url) > MAX_URL or _SPACE.search(url):  # a line break could pass for the next result
        return None
    when = item.get(published)
    return Hit(
        title=_text(item.get("title"), MAX_TITLE) or url,
        url=url,
        snippet=_text(item.get(snippet), MAX_SNIPPET),
        published=when[:100] if isinstance(when, str) and when else None,
    )


def _answer(item: Any) -> str:
    """Return an answer of SearXNG: a text, or in newer versions an object that holds one."""
    found = item.get("answer") if isinstance(item, dict) else item
    return found if isinstance(found, str) else ""


def _text(value: Any, limit: int) -> str:
    """Return plain text on one line: engines mark words with tags."""
    if not isinstance(value, str):
        return ""
    return _SPACE.sub(" ", unescaped(_TAG.sub("", value[: 4 * limit]))).strip()[:limit]
