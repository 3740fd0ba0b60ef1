"""The output budget: exact at the limit, honest beyond it."""

import json

import pytest

from toolcell.base.jsontext import dumps, utf8_length
from toolcell.codemode.output import CuttingLedger, RefusingLedger
from toolcell.codemode.output_cut import GUIDANCE
from toolcell.errors import CellError
from toolcell.execution.contract import OutputFrame


def text(value):
    return OutputFrame("text", value)


def size(reply):
    output = utf8_length(dumps(list(reply.output))) if reply.output else 0
    return output + utf8_length(dumps(reply.value))


def test_exactly_at_the_limit_is_kept_and_one_byte_less_is_not():
    """rule 3.11, BEHAVIOURS 126: UTF-8 bytes of JSON; an empty output costs nothing."""
    value = dumps("é" * 700)
    bytes_of_value = utf8_length(value)
    assert CuttingLedger(bytes_of_value).reply(value=value).value == "é" * 700
    cut = CuttingLedger(bytes_of_value - 1).reply(value=value)
    assert cut.value["truncated"] is True


def test_output_and_value_share_one_budget_exactly():
    """BEHAVIOURS 126."""
    entries = [{"type": "text", "text": 'a"b'}, {"type": "json", "value": {"b": 1}}]
    value = dumps("v" * 300)
    total = utf8_length(dumps(entries)) + utf8_length(value)
    for limit, whole in ((total, True), (total - 1, False)):
        ledger = CuttingLedger(limit)
        ledger.add([text('a"b'), OutputFrame("json", '{"b":1}')])
        reply = ledger.reply(value=value)
        assert (reply.omitted_bytes == 0) is whole
        if whole:
            assert list(reply.output) == entries


@pytest.mark.parametrize("body", ['"' * 60_000, "y" * 120_000, "😀" * 30_000, "\ud800" * 40_000])
def test_the_marker_counts_every_byte(body):
    """BEHAVIOURS 124, BEHAVIOURS 127, BEHAVIOURS 134, LM-03."""
    value = json.dumps("path list: " + body, ensure_ascii=False)
    reply = CuttingLedger(65_536).reply(value=value)
    marker = reply.value
    assert marker["prefix"].startswith('"path list: ')
    assert value.startswith(marker["prefix"])
    assert utf8_length(marker["prefix"]) + marker["omittedBytes"] == utf8_length(value)
    assert marker["guidance"] == GUIDANCE
    assert utf8_length(dumps(marker)) <= 65_536 - 1000
    assert utf8_length(marker["prefix"]) > 10_000


def test_cut_text_output_keeps_order_and_says_what_is_missing():
    """LM-03, LM-07: kept entries in call order, the rest counted at top level."""
    ledger = CuttingLedger(65_536)
    ledger.add([text(letter * 20_000) for letter in "abcd"])
    reply = ledger.reply(value="null")
    assert [entry["text"][0] for entry in reply.output[:-1]] == ["a", "b", "c"]
    marker = reply.output[-1]["value"]
    assert marker["prefix"].startswith('"dddd')
    assert marker["omittedBytes"] + utf8_length(marker["prefix"]) == 20_002
    assert reply.omitted_bytes == marker["omittedBytes"]
    assert size(reply) <= 65_536


def test_what_never_fitted_is_counted_too():
    """BEHAVIOURS 127, rule 8.5: nothing is cut in silence."""
    ledger = CuttingLedger(2048)
    for _ in range(50):
        ledger.add([text("z" * 1000)])
    reply = ledger.reply(value="1")
    marker = reply.output[-1]["value"]
    kept = sum(1 for entry in reply.output if entry["type"] == "text")
    assert marker["omittedEntries"] == 50 - kept - 1
    assert marker["omittedBytes"] + utf8_length(marker["prefix"]) == (50 - kept) * 1002
    assert reply.value == 1
    assert size(reply) <= 2048


def test_a_small_value_survives_a_flood_of_output():
    """BEHAVIOURS 129: never an empty reply."""
    ledger = CuttingLedger(1024)
    ledger.add([text("z" * 100_000)])
    reply = ledger.reply(value='{"answer":42}')
    assert reply.value == {"answer": 42}
    assert reply.output


def test_the_budget_spans_the_resumes_and_each_reply_has_only_new_entries():
    """rule 3.11, BEHAVIOURS 128."""
    ledger = CuttingLedger(4096)
    ledger.add([text("a" * 3000)])
    assert len(ledger.reply().output) == 1
    ledger.add([text("b" * 3000)])
    second = ledger.reply(value="7")
    assert all("aaa" not in str(entry) for entry in second.output)
    assert second.omitted_bytes > 1000
    assert second.value == 7


def test_a_long_error_is_cut_with_a_note_within_the_budget():
    """BEHAVIOURS 125, LM-06."""
    ledger = CuttingLedger(2048)
    ledger.add([text("o" * 1_000_000)])
    reply = ledger.reply(error="Error: cause " + "E" * 1_000_000)
    assert reply.error.startswith("Error: cause ")
    assert reply.error.endswith(" [error truncated]")
    total = utf8_length(dumps(list(reply.output))) + utf8_length(dumps(reply.error))
    assert total <= 2048


def test_compact_json_is_what_counts():
    """LM-04."""
    rows = [{"sku": f"p{i}", "qty": i % 3} for i in range(60)]
    reply = CuttingLedger(2048).reply(value=dumps(rows))
    assert reply.value == rows


def test_the_tools_api_fails_over_the_cap_and_is_cumulative():
    """rule 3.11, BEHAVIOURS 122, BEHAVIOURS 123, BEHAVIOURS 128."""
    ledger = RefusingLedger(1024)
    ledger.add([text("before")])
    assert len(ledger.reply().output) == 1
    ledger.add([text("after")])
    assert [e["text"] for e in ledger.reply(value="1").output] == ["before", "after"]
    with pytest.raises(CellError, match="output limit exceeded") as caught:
        ledger.reply(value=dumps("x" * 2048))
    assert caught.value.code == "output_limit_exceeded"
    with pytest.raises(CellError, match="output limit exceeded"):
        ledger.add([text("x" * 2048)])
    assert [e["text"] for e in ledger.reply(error="e").output] == ["before", "after"]


def test_a_value_nested_too_deeply_is_an_error():
    """rule 3.11."""
    deep = "[" * 30_000 + "]" * 30_000
    with pytest.raises(CellError, match="nested too deeply"):
        CuttingLedger(1 << 20).reply(value=deep)
