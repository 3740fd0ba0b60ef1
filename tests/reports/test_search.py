"""Reports SR: finding a tool."""

import json
import random

import pytest

from tests.reports.rig import cells, fixture_server, named_server, obj, raw

pytestmark = pytest.mark.anyio


async def hits(open_, query, limit=None):
    """Names that a search finds, in order."""
    options = "" if limit is None else f", {{limit: {limit}}}"
    q = json.dumps(query)
    if open_.api == "catalog":
        code = f"return (await catalog.search({q}{options})).map((h) => h.toolName)"
    else:
        code = f"return (await tools.search({q}{options})).map((h) => h.name)"
    return await open_.value(code)


def named(**tools):
    return [raw(name, description=text) for name, text in tools.items()]


@pytest.mark.parametrize("query", ["reminding", "reminders", "reminded"])
async def test_inflected_words_find_the_tool(guest, query):
    """SR-01."""
    tools = named(nudge_add="Remind a person at a given time.", note_add="Write a note.")
    async with cells(guest, tools=tools) as open_:
        assert (await hits(open_, query))[0] == "nudge_add"


async def test_a_part_of_a_word_is_no_match(guest):
    """SR-02."""
    tools = named(chart_draw="Draw a chart", museum_find="Find art pieces")
    async with cells(guest, tools=tools) as open_:
        assert await hits(open_, "art") == ["museum_find"]


@pytest.mark.parametrize("query", ["zzqx flurb", "", "   ", "!!!"])
async def test_nothing_found_is_an_empty_list(guest, query):
    """SR-03."""
    async with cells(guest) as open_:
        assert await hits(open_, query) == []


async def test_other_scripts_are_words_too(guest):
    """SR-04."""
    tools = named(
        discount_show="Показать текущую скидку",
        order_find="查找订单",
        price_list="List prices.",
    )
    async with cells(guest, tools=tools) as open_:
        assert (await hits(open_, "скидку"))[0] == "discount_show"
        assert (await hits(open_, "查找订单"))[0] == "order_find"
    async with cells(guest, tools=named(price_list="List prices.")) as open_:
        assert await hits(open_, "жирафа") == []


async def test_one_common_word_of_many_is_no_hit(guest):
    """SR-06."""
    tools = named(
        resend_failed_invoices="Re-send failed invoices",
        report_targets_list="List report delivery channels",
    )
    async with cells(guest, tools=tools) as open_:
        assert await hits(open_, "send sms text to phone number now") == []
        assert await hits(open_, "slack_channel") == []
        assert await hits(open_, "misc__") == []


async def test_compound_names_are_found_by_their_parts(guest):
    """SR-09."""
    tools = named(listPDFs="Show files.", bank_transfer="Move money.", SMTPServerCheck="Test mail.")
    async with cells(guest, tools=tools) as open_:
        for query, name in {
            "pdf": "listPDFs",
            "bank": "bank_transfer",
            "smtp server": "SMTPServerCheck",
        }.items():
            assert (await hits(open_, query))[0] == name
            assert (await hits(open_, name))[0] == name


async def test_parameters_are_searched_and_those_of_remote_tools_never_shown(catalog_guest):
    """SR-10, rule 4.5."""
    own = raw("pay", obj(iban={"type": "string"}), description="Pay someone.")
    entry = {
        "name": "taxes",
        "description": "Work out what is due.",
        "inputSchema": obj(vatcode={"type": "string", "description": "CANARY"}),
    }
    async with cells(catalog_guest, tools=[own], mcp={"fx": named_server(entry)}) as open_:
        assert await hits(open_, "iban") == ["pay"]
        assert await hits(open_, "vatcode") == ["taxes"]
        echoed = await open_.value("return JSON.stringify(await catalog.search('vatcode'))")
        assert "vatcode" not in echoed
        assert "CANARY" not in echoed
        description = open_.cm.definitions()[0]["function"]["description"]
        assert "vatcode" not in description


async def test_order_depends_on_neither_registration_nor_denied_tools(guest):
    """SR-11: limits count after filtering."""
    tools = [raw(f"same_{n:03}", description="Equal thing.") for n in range(200)]
    orders = []
    for seed in range(5):
        shuffled = list(tools)
        random.Random(seed).shuffle(shuffled)
        async with cells(guest, tools=shuffled) as open_:
            orders.append(await hits(open_, "equal thing", 50))
    assert all(order == orders[0] for order in orders)
    denied = {f"same_{n:03}" for n in range(0, 100, 2)}
    config = {"tools": {"deny": sorted(denied)}}
    async with cells(guest, tools=tools, config=config) as open_:
        left = await hits(open_, "equal thing", 50)
    assert len(left) == 50
    assert not denied & set(left)
    kept = [name for name in orders[0] if name not in denied]
    assert left[: len(kept)] == kept


@pytest.mark.parametrize("denied", [False, True])
async def test_a_server_that_is_down_is_named_where_nothing_was_found(guest, denied):
    """SR-12: not where policy denies its namespace."""
    down = {"memos": fixture_server("--die", "3")}
    config = {"tools": {"deny": ["mcp:memos:*"]}} if denied else {}
    search = "catalog.search" if guest[1] == "catalog" else "tools.search"
    async with cells(guest, tools=[raw("own")], mcp=down, config=config) as open_:
        outcome = await open_.exec(f"return await {search}('create memo')")
        assert outcome.value == []
        told = json.dumps(outcome.output)
        assert ("memos" in told) is not denied


async def test_a_plugin_that_cannot_load_is_named_without_the_hosts_words(guest, tmp_path):
    """SR-12, BR-05: the reason is the operator's; the model learns that something is missing."""
    bad = tmp_path / "freight.py"
    bad.write_text("raise RuntimeError('CANARY')")
    search = "catalog.search" if guest[1] == "catalog" else "tools.search"
    config = {"plugins": {"paths": [str(bad)]}}
    async with cells(guest, tools=[raw("own")], config=config) as open_:
        outcome = await open_.exec(f"return await {search}('book a lorry')")
    told = json.dumps(outcome.output)
    assert "'freight' could not be loaded" in told
    assert "CANARY" not in told
    assert str(tmp_path) not in told
