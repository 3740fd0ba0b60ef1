"""`web_search`: one union of results, answer, error and raw (issue part 4; rule 7.4, rule 7.5)."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.sources.core.conftest import call, context
from tests.sources.core.web import page, redirect, serving
from toolcell.errors import ConfigError
from toolcell.schema.hints import output_hint
from toolcell.sources.core.addresses import AddressRules
from toolcell.sources.core.http import LazyHttp
from toolcell.sources.core.search_engines import ENGINES
from toolcell.sources.core.web_search import SearchSetup, web_search_tool

pytestmark = pytest.mark.anyio

SEARXNG = {
    "query": "tides",
    "results": [
        {
            "url": "https://a.example/",
            "title": "Tides &amp; <b>moons</b>",
            "content": "High\n and low.",
            "publishedDate": "2026-01-02T00:00:00",
            "engine": "x",
        },
        {"url": "javascript:alert(1)", "title": "bad"},
        {"url": "https://b.example/", "title": "", "content": None},
    ],
    "answers": [],
}
BRAVE = {
    "type": "search",
    "web": {
        "results": [
            {
                "url": "https://c.example/",
                "title": "C",
                "description": "<strong>c</strong>",
                "age": "2 days",
            }
        ]
    },
}


def searcher(name: str, url: str | None, key: str | None = "a-very-secret-key", **options):
    setup = SearchSetup(engine=ENGINES[name](url, key), **options)
    return web_search_tool(LazyHttp(AddressRules(("*",))), setup)


async def test_searxng_results_have_the_one_shape():
    async with serving() as web:
        web.answers["/search"] = page(json.dumps(SEARXNG), "application/json")
        got = await call(
            searcher("searxng", web.url), query="tides & moon", language="en", since="week"
        )
        query = parse_qs(urlsplit(web.asked[0].target).query)
    assert got == {
        "kind": "results",
        "provider": "searxng",
        "results": [
            {
                "title": "Tides & moons",
                "url": "https://a.example/",
                "snippet": "High and low.",
                "published": "2026-01-02T00:00:00",
            },
            {
                "title": "https://b.example/",
                "url": "https://b.example/",
                "snippet": "",
                "published": None,
            },
        ],
    }
    assert query == {
        "q": ["tides & moon"],
        "format": ["json"],
        "language": ["en"],
        "time_range": ["week"],
    }


async def test_brave_results_have_the_same_shape_and_the_key_goes_in_its_header():
    async with serving() as web:
        web.answers["/s"] = page(json.dumps(BRAVE), "application/json")
        got = await call(searcher("brave", f"{web.url}/s"), query="c", limit=3, since="day")
        asked = web.asked[0]
    assert got == {
        "kind": "results",
        "provider": "brave",
        "results": [
            {"title": "C", "url": "https://c.example/", "snippet": "c", "published": "2 days"}
        ],
    }
    assert asked.headers["x-subscription-token"] == "a-very-secret-key"
    assert parse_qs(urlsplit(asked.target).query) == {
        "q": ["c"],
        "count": ["3"],
        "freshness": ["pd"],
    }


@pytest.mark.parametrize("answers", [["42"], [{"answer": "42", "url": None}]])
async def test_a_direct_answer_comes_with_the_results(answers):
    async with serving() as web:
        web.answers["/search"] = page(
            json.dumps({**SEARXNG, "answers": answers}), "application/json"
        )
        got = await call(searcher("searxng", web.url), query="x", limit=1)
    assert (got["kind"], got["answer"], len(got["results"])) == ("answer", "42", 1)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (page("no", status="401 Unauthorized"), "unauthorized"),
        (page("no", status="403 Forbidden"), "unauthorized"),
        (page("no", status="429 Too Many Requests"), "rate_limited"),
        (page("no", status="500 Oops"), "failed"),
        (redirect("http://127.0.0.1:1/"), "failed"),
        (b"nonsense\r\n\r\n", "unreachable"),
    ],
)
async def test_what_goes_wrong_is_an_error_value_without_the_key(answer, code):
    async with serving() as web:
        web.answers["/s"] = answer
        got = await call(searcher("brave", f"{web.url}/s"), query="x")
        assert len(web.asked) == 1
    assert (got["kind"], got["code"], got["provider"]) == ("error", code, "brave")
    assert "secret" not in json.dumps(got)


async def test_a_server_that_is_not_there_is_an_error_value():
    got = await call(searcher("searxng", "http://127.0.0.1:1"), query="x")
    assert (got["kind"], got["code"]) == ("error", "unreachable")


@pytest.mark.parametrize(
    "body", ["<html>hello", "[1]", '{"results": 5}', "", "[" * 100_000, '{"web": {"results": {}}}']
)
@pytest.mark.parametrize("name", ["searxng", "brave"])
async def test_an_answer_of_another_shape_is_given_as_it_is(name, body):
    async with serving() as web:
        web.answers["/search"] = web.answers["/"] = page(body, "text/plain")
        got = await call(searcher(name, web.url), query="x")
    assert got["kind"] == "raw"
    assert body.startswith(got["text"])


async def test_without_a_provider_the_result_says_what_to_configure():
    tool = web_search_tool(LazyHttp(AddressRules()), None)
    got = await call(tool, query="x")
    assert got["code"] == "not_configured"
    assert "tools.web.search" in got["message"]


async def test_results_are_marked_as_from_outside():
    """rule 4.9."""
    async with serving() as web:
        web.answers["/search"] = page(json.dumps(SEARXNG), "application/json")
        result = await searcher("searxng", web.url).execute({"query": "x"}, context())
    assert result.untrusted


def test_a_provider_that_lacks_something_is_a_config_error():
    with pytest.raises(ConfigError, match=r"tools\.web\.search\.baseUrl"):
        ENGINES["searxng"](None, None)
    with pytest.raises(ConfigError, match=r"tools\.web\.search\.apiKey"):
        ENGINES["brave"](None, None)


def test_its_contract_is_a_complete_hint():
    """rule 7.4, rule 7.2: the exact union fits the quick index."""
    hint = output_hint(searcher("brave", None).output_schema)
    assert hint is not None
    for kind in ("results", "answer", "error", "raw"):
        assert f'kind: "{kind}"' in hint


@pytest.mark.parametrize("answers", [5, True, "text", {"a": 1}, [5, None, {"answer": []}]])
async def test_answers_of_another_shape_are_none(answers):
    async with serving() as web:
        body = json.dumps({"results": [], "answers": answers})
        web.answers["/search"] = page(body, "application/json")
        got = await call(searcher("searxng", web.url), query="x")
    assert got == {"kind": "results", "provider": "searxng", "results": []}


@pytest.mark.parametrize("url", ["https://a.example/\n2. Forged", "https://" + "a" * 3000])
async def test_a_hit_whose_address_is_none_is_left_out(url):
    async with serving() as web:
        body = json.dumps({"results": [{"url": url, "title": "t"}]})
        web.answers["/search"] = page(body, "application/json")
        assert (await call(searcher("searxng", web.url), query="x"))["results"] == []


async def test_a_hit_with_a_character_that_is_none_does_not_spoil_the_others():
    hits = [{"url": "https://a.example/", "title": "t", "content": "&#" + "9" * 5000 + "; x"}]
    async with serving() as web:
        web.answers["/search"] = page(json.dumps({"results": hits}), "application/json")
        got = await call(searcher("searxng", web.url), query="x")
    assert got["results"][0]["snippet"] == "\ufffd x"


@pytest.mark.parametrize("query", ["x", "x" * 900])
async def test_the_address_of_the_engine_is_not_told(query):
    got = await call(searcher("searxng", "http://127.0.0.1:1/path-not-for-models"), query=query)
    assert got["code"] == "unreachable"
    assert got["message"].startswith("searxng cannot be reached")
