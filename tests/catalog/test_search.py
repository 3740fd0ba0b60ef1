"""What a search finds, and in which order."""

import random
from collections.abc import Sequence

import pytest

from tests.catalog.made import client, core, mcp, params, plugin
from toolcell.catalog.entry import Entry, Hit
from toolcell.catalog.search import index
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.tools.tool import SourcedTool


def found(tools: Sequence[SourcedTool], query: str, limit: int = 8, **options: object) -> list[str]:
    hits = CatalogSnapshot.build(tools).search(query, limit=limit, **options)  # type: ignore[arg-type]
    return [hit.entry.name for hit in hits]


Q = [
    core("web_search", "Search the web for current information"),
    core("read_file", "Read a file from disk"),
    core("cron_create", "Schedule a recurring task"),
    core("spreadsheet_open", "Open a spreadsheet document"),
    core("issue_create", "Open a new issue", parameters=params(repository="Target repository")),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("scheduling", ["cron_create"]),
        ("reminder", ["cron_create"]),
        ("look up the price", ["web_search"]),
        ("repository", ["issue_create"]),
        ("read", ["read_file"]),
        ("open", ["spreadsheet_open", "issue_create"]),
        ("create", ["cron_create", "issue_create"]),
        ("get issue", ["issue_create"]),
        ("readFile", ["read_file"]),
        ("internet news", ["web_search"]),
        ("google", ["web_search"]),
        ("excel", []),
        ("bug ticket", []),
        ("the and with", []),
        ("価格を調べて", []),
    ],
)
def test_the_measured_catalog_answers_as_measured(query, expected):
    """BEHAVIOURS 309, BEHAVIOURS 310, BEHAVIOURS 311."""
    assert found(Q, query) == expected


def test_a_japanese_word_finds_its_tool():
    """BEHAVIOURS 311."""
    assert found([*Q, core("kakaku", "価格 lookup")], "価格") == ["kakaku"]


@pytest.mark.parametrize("query", ["reminding", "reminders", "reminded"])
def test_inflected_words_find_the_tool(query):
    """SR-01."""
    tools = [*Q, core("nudge_add", "Remind a person at a given time.")]
    assert found(tools, query)[0] == "nudge_add"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("run", "runs"),
        ("run", "running"),
        ("schedule", "scheduled"),
        ("reminder", "reminders"),
        ("call", "calling"),
        ("policy", "policies"),
        ("news", "news"),
        ("status", "status"),
        ("analysis", "analysis"),
    ],
)
def test_forms_of_a_word_are_one_term(one, other):
    """BEHAVIOURS 312."""
    assert found([core("t", f"about {one}")], other) == ["t"]


@pytest.mark.parametrize(
    ("one", "other"), [("news", "new"), ("status", "stat"), ("process", "pro")]
)
def test_words_that_only_look_inflected_stay_apart(one, other):
    """BEHAVIOURS 312."""
    assert found([core("t", f"about {one}")], other) == []


def test_a_part_of_a_word_is_no_match():
    """SR-02."""
    tools = [core("chart_draw", "Draw a chart"), core("museum_find", "Find art pieces")]
    assert found(tools, "art") == ["museum_find"]


@pytest.mark.parametrize("query", ["zzqx flurb", "", "   ", "!!!", "\n\t", "the"])
def test_no_match_is_an_empty_result(query):
    """SR-03, BEHAVIOURS 154, BEHAVIOURS 304."""
    assert found(Q, query) == []


def test_other_scripts_are_searched_and_never_matched_by_chance():
    """SR-04."""
    tools = [
        core("discount_show", "Показать текущую скидку"),
        core("order_find", "查找订单"),
        *Q,
    ]
    assert found(tools, "скидку") == ["discount_show"]
    assert found(tools, "查找订单")[0] == "order_find"
    assert found(Q, "скидку") == []


def test_one_common_word_is_not_a_hit():
    """SR-06: of four or more content words, an action word alone is not enough."""
    tools = [
        core("resend_failed_invoices", "Re-send failed invoices"),
        core("report_targets_list", "List report delivery channels"),
    ]
    assert found(tools, "send sms text to phone number now") == []
    assert found(tools, "slack_channel") == []
    assert found(tools, "misc__") == []
    assert found(tools, "send failed invoices again") == ["resend_failed_invoices"]
    assert found(tools, "channel") == ["report_targets_list"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("pdf", "listPDFs"),
        ("pdfs", "listPDFs"),
        ("PDFs", "listPDFs"),
        ("bank", "bank_transfer"),
        ("smtp server", "SMTPServerCheck"),
        ("listPDFs", "listPDFs"),
        ("bank_transfer", "bank_transfer"),
        ("SMTPServerCheck", "SMTPServerCheck"),
    ],
)
def test_compound_identifiers_are_found_by_their_parts(query, expected):
    """SR-09."""
    tools = [core("listPDFs"), core("bank_transfer"), core("SMTPServerCheck")]
    assert found(tools, query)[0] == expected


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("getURLs", "url"),
        ("getOAuthToken", "auth token"),
        ("create_event2", "event 2"),
        ("create_event2", "event"),
    ],
)
def test_words_are_split_at_changes_of_case_and_digits(name, query):
    """BEHAVIOURS 313."""
    assert found([core(name)], query) == [name]


def test_parameters_of_every_source_count_and_are_never_echoed():
    """SR-10, rule 4.5: bounded, and in no hit."""
    tools = [
        core("pay", "Send money", parameters=params(iban="Account of the receiver")),
        mcp("shop", "submit", "Submit", parameters=params(vatcode="x")),
        client("ask", "Ask", parameters=params(mood="x")),
    ]
    assert found(tools, "iban") == ["pay"]
    assert found(tools, "vatcode") == ["submit"]
    assert found(tools, "mood") == ["ask"]
    (hit,) = CatalogSnapshot.build(tools).search("vatcode", limit=1)
    assert "vatcode" not in str(hit.entry.compact())


def test_parameters_count_to_four_levels_and_two_thousand_characters():
    """BEHAVIOURS 314, SR-10."""
    nested = params("fifth")
    for name in ("fourth", "third", "second", "first"):
        nested = {"type": "object", "properties": {name: nested}}
    assert found([mcp("s", "t", parameters=nested)], "fourth") == ["t"]
    assert found([mcp("s", "t", parameters=nested)], "fifth") == []
    long = {"type": "object", "properties": {"a" * 2_100: {}, "needle": {}}}
    assert found([mcp("s", "t", parameters=long)], "needle") == []


def test_an_exact_name_or_id_comes_first():
    """BEHAVIOURS 306, BEHAVIOURS 307."""
    tools = [core("find_all", "search search search search"), core("search", "nothing else")]
    snapshot = CatalogSnapshot.build(tools)
    assert [h.exact for h in snapshot.search("search", limit=5)] == [True, False]
    assert [h.entry.name for h in snapshot.search("SEARCH", limit=5)] == ["search", "find_all"]
    assert [h.entry.name for h in snapshot.search("openclaw:core:search", limit=1)] == ["search"]


def test_exact_spelling_beats_another_case():
    """BEHAVIOURS 180, BEHAVIOURS 308."""
    snapshot = CatalogSnapshot.build([core("listURL"), core("listUrl")])
    for name in ("listURL", "listUrl"):
        first = snapshot.search(name, limit=2)[0]
        assert (first.entry.name, first.exact) == (name, True)
        assert [h.exact for h in snapshot.search(name, limit=2)].count(True) == 1
    assert all(h.exact for h in snapshot.search("LISTURL", limit=2))
    assert not any(hit.exact for hit in snapshot.search("OPENCLAW:CORE:LISTURL", limit=2))


def test_a_callable_name_and_an_mcp_path_are_exact_too():
    """BEHAVIOURS 180."""
    snapshot = CatalogSnapshot.build([core("llm-task"), mcp("my-server", "do.it")])
    assert snapshot.search("llm_task", limit=1)[0].exact
    assert snapshot.search("MCP.myServer.doIt", limit=1)[0].exact
    assert snapshot.search("mcp:my-server:do.it", limit=1)[0].exact


def test_a_tool_named_like_a_stop_word_is_found_by_its_name():
    """BEHAVIOURS 316."""
    assert found([core("do", "Perform"), *Q], " DO ") == ["do"]


def test_literal_words_come_before_stand_ins():
    """BEHAVIOURS 306."""
    tools = [core("a", "photo photo photo"), core("b", f"one picture {'among others ' * 9}")]
    assert found(tools, "picture") == ["b", "a"]


def test_equal_scores_go_by_id():
    """BEHAVIOURS 317."""
    tools = [core(name, "harvest") for name in ("z", "a", "m")]
    assert found(tools, "harvest", 2) == ["a", "m"]


def test_ranking_depends_neither_on_order_nor_on_hidden_tools():
    """SR-11, BEHAVIOURS 303, rule 4.5: limits count after filtering."""
    tools = [core(f"tool_{i:03}", "harvest corn") for i in range(200)]
    expected = found(tools, "harvest", 200)
    for seed in range(5):
        random.Random(seed).shuffle(tools)
        assert found(tools, "harvest", 200) == expected
    denied = {f"tool_{i:03}" for i in range(0, 200, 4)}
    shown = found(tools, "harvest", 200, visible=lambda entry: entry.name not in denied)
    assert shown == [name for name in expected if name not in denied]
    assert len(found(tools, "harvest", 150, visible=lambda e: e.name not in denied)) == 150


def test_hidden_tools_do_not_touch_the_scores():
    """rule 4.5, PO-01: statistics over the visible inventory, exact names included."""
    seen = [core("a", "harvest corn"), core("b", "corn bread")]
    secret = [core("secret_tool", f"corn {'harvest ' * 50}"), core("secret_two", "harvest")]
    alone = CatalogSnapshot.build(seen).search("harvest corn", limit=8)
    among = CatalogSnapshot.build([*seen, *secret]).search(
        "harvest corn", limit=8, visible=lambda entry: not entry.name.startswith("secret")
    )
    assert [(h.entry.id, h.score) for h in among] == [(h.entry.id, h.score) for h in alone]
    snapshot = CatalogSnapshot.build([*seen, *secret])
    hidden = snapshot.search("secret_tool", limit=8, visible=lambda e: e.name in {"a", "b"})
    assert hidden == ()


def test_visibility_is_asked_on_every_search():
    """rule 4.5: mutable allow sets included."""
    snapshot = CatalogSnapshot.build([core("a", "harvest"), core("b", "harvest")])
    allowed = {"a"}

    def visible(entry: Entry) -> bool:
        return entry.name in allowed

    assert [h.entry.name for h in snapshot.search("harvest", limit=8, visible=visible)] == ["a"]
    allowed.add("b")
    assert len(snapshot.search("harvest", limit=8, visible=visible)) == 2
    allowed.clear()
    assert snapshot.search("harvest", limit=8, visible=visible) == ()


def test_an_unchanged_catalog_is_indexed_once(monkeypatch):
    """rule 4.5, BEHAVIOURS 301: lexical data is cached by content, not by tool objects."""
    index.index_of.cache_clear()
    built = []
    original = index.Index.__init__

    def counted(self, texts):
        built.append(len(texts))
        original(self, texts)

    monkeypatch.setattr(index.Index, "__init__", counted)

    def publish(description: str) -> CatalogSnapshot:
        return CatalogSnapshot.build([core("once_only", description), *Q])

    first = publish("harvest")
    assert built == []
    for _ in range(3):
        first.search("harvest", limit=1)
    publish("harvest").search("corn", limit=1)
    assert built == [6]
    publish("corn").search("corn", limit=1)
    assert built == [6, 6]


def test_an_edited_description_is_found_at_once():
    """BEHAVIOURS 318."""
    assert found([core("a", "harvest")], "corn") == []
    assert found([core("a", "corn")], "corn") == ["a"]


def test_a_limit_below_one_is_refused():
    """BEHAVIOURS 304."""
    with pytest.raises(ValueError, match=r"limit must be a positive integer\."):
        CatalogSnapshot.build(Q).search("read", limit=0)


def test_the_owner_of_a_tool_is_searched():
    """rule 4.8: native and MCP tools are ranked together, by server or plugin too."""
    tools = [mcp("github", "create_issue"), plugin("jira", "create_issue"), core("create_issue")]
    hits = CatalogSnapshot.build(tools).search("jira issue", limit=3)
    assert hits[0].entry.sourced.owner == "jira"
    assert len(hits) == 3


SHOP = [
    core("read", "Read a file from the local file system"),
    core("write", "Write a file"),
    core("exec", "Run a shell command"),
    plugin("logistics", "list_shipments", "List the shipped items of the warehouse"),
    plugin("logistics", "list_customers", "List customers"),
    plugin("cal", "calendar_list_events", "List calendar events"),
    plugin("cal", "calendar_delete_event", "Delete an event"),
    mcp("github", "create_issue", "Create a new issue in a GitHub repository"),
    mcp("github", "list_issues", "List issues in a GitHub repository"),
    mcp("gitlab", "create_issue", "Create a new issue in a GitLab project"),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("建立 GitHub 議題", "mcp:github:create_issue"),
        ("创建 GitHub 议题", "mcp:github:create_issue"),
        ("create GitHub issue", "mcp:github:create_issue"),
        ("行事曆事件", "openclaw:cal:calendar_list_events"),
        ("列出出貨項目", "openclaw:logistics:list_shipments"),
        ("read local file", "openclaw:core:read"),
        ("讀取本機檔案", "openclaw:core:read"),
        ("Kalenderereignisse auflisten", "openclaw:cal:calendar_list_events"),
        ("listar los eventos del calendario", "openclaw:cal:calendar_list_events"),
        ("カレンダーのイベント一覧", "openclaw:cal:calendar_list_events"),
    ],
)
def test_each_example_query_ranks_its_tool_first(query, expected):
    """rule 4.8: the Chinese queries of the seeds over English tools included."""
    assert CatalogSnapshot.build(SHOP).search(query, limit=5)[0].entry.id == expected


def test_english_words_are_not_read_as_another_language():
    """SR-02: `red` is `network` in Spanish; an English query must not find one by it."""
    tools = [core("network_scan", "Scan the network"), core("paint", "Paint a car red")]
    assert found(tools, "red car") == ["paint"]
    assert found(tools, "escanear la red de servidores")[0] == "network_scan"


def test_a_reranker_orders_the_hits_and_cannot_add_any():
    """rule 4.5: what a reranker returns was visible."""
    snapshot = CatalogSnapshot.build([core(name, "harvest") for name in "abc"])

    def backwards(_query: str, hits: Sequence[Hit]) -> Sequence[Hit]:
        return hits[::-1]

    hits = snapshot.search("harvest", limit=2, reranker=backwards)
    assert [hit.entry.name for hit in hits] == ["c", "b"]
    foreign = CatalogSnapshot.build([core("evil", "harvest")]).search("harvest", limit=1)
    with pytest.raises(ValueError, match="was not given"):
        snapshot.search("harvest", limit=2, reranker=lambda _query, _hits: foreign)


def test_an_exact_name_stays_before_a_reranker():
    """BEHAVIOURS 306."""
    snapshot = CatalogSnapshot.build([core("harvest"), core("b", "harvest"), core("c", "harvest")])
    hits = snapshot.search("harvest", limit=3, reranker=lambda _query, hits: hits[::-1])
    assert [hit.entry.name for hit in hits] == ["harvest", "c", "b"]


def test_why_a_tool_was_found_names_query_words_only():
    """SR-10: texts of the tool are never echoed."""
    schema = params(repository="The secret sauce")
    snapshot = CatalogSnapshot.build([mcp("github", "create_issue", "Open", parameters=schema)])
    (entry,) = snapshot.entries
    assert snapshot.explain("建立 issue in a repo", entry) == {
        "name": ("建立 = create", "issue"),
        "parameters": ("repo ~ repositori",),
    }


@pytest.mark.parametrize(
    "query",
    ["x" * 100_000, "a b " * 50_000, "議" * 50_000, "aB" * 20_000, "\ud800 read", "ǅ" * 999],
)
def test_a_hostile_query_is_bounded(query):
    """SR-03: bounded work, no error."""
    assert isinstance(CatalogSnapshot.build(Q).search(query, limit=3), tuple)
