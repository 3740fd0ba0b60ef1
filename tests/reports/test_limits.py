"""Reports LM: what is bounded is bounded visibly, and nothing else is."""

import json

import pytest

from tests.reports.rig import cells
from toolcell import Completed, tool
from toolcell.codemode.results import model_text

pytestmark = pytest.mark.anyio


def size(value):
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


async def test_a_cell_sees_all_of_a_large_result_and_only_what_it_returns_is_bounded(guest):
    """LM-01."""
    async with cells(guest, maxOutputBytes=65536) as open_:
        code = "const r = await big({n: 200000}); return r.text.length"
        assert await open_.value(code, "big") == 200_000
        whole = await open_.exec("return await big({n: 200000})", "big")
        if open_.api == "tools":
            assert whole.code == "output_limit_exceeded"
        else:
            assert isinstance(whole, Completed)
            assert whole.value["truncated"] is True


@pytest.mark.parametrize("quote", ['"', "y"])
async def test_escaped_text_keeps_a_prefix_and_an_honest_count(catalog_guest, quote):
    """LM-03."""
    async with cells(catalog_guest, maxOutputBytes=65536) as open_:
        count = 60000 if quote == '"' else 130000
        make = f"'path list: ' + '{quote}'.repeat({count})"
        outcome = await open_.exec(f"return {make}")
        said = size("path list: " + quote * count)
        assert "path list: " in outcome.value["prefix"]
        assert size(outcome.value) <= 65536
        kept = len(outcome.value["prefix"].encode())
        assert kept + outcome.value["omittedBytes"] == said
        printed = await open_.exec(f"text({make})")
        assert printed.omitted_bytes > 0
        assert size(list(printed.output)) <= 65536
        assert "path list: " in json.dumps(printed.output)


async def test_a_result_that_fits_when_compact_is_not_cut(guest):
    """LM-04: the model's text is compact."""
    code = 'return Array.from({length: 60}, (_, i) => ({sku: "p" + i, qty: i % 3}))'
    async with cells(guest, maxOutputBytes=2048) as open_:
        outcome = await open_.exec(code)
        assert isinstance(outcome, Completed), outcome
        assert len(outcome.value) == 60
        assert outcome.omitted_bytes == 0
        text = model_text(outcome)
    assert '{"sku":"p0","qty":0},{"sku":"p1","qty":1}' in text


@tool
async def roar() -> str:
    """Fail at length."""
    raise RuntimeError("lead " + "R" * 1_000_000)


@pytest.mark.parametrize(
    ("code", "lead"),
    [
        ('throw new Error("E".repeat(1000000))', "Error: EEE"),
        ("await CALL({})", "lead RRR"),
        ('text("t".repeat(1000000)); throw new Error("after")', "Error: after"),
    ],
)
async def test_a_huge_error_keeps_its_start_and_fits(guest, code, lead):
    """LM-06."""
    call = "roar" if guest[1] == "catalog" else "tools.roar"
    async with cells(guest, tools=[roar], maxOutputBytes=2048) as open_:
        outcome = await open_.failed(code.replace("CALL", call))
    if guest[1] == "tools" and "text(" in code:
        assert outcome.code == "output_limit_exceeded"
    else:
        assert lead in outcome.error
        if lead != "Error: after":
            assert outcome.error.endswith("[error truncated]")
    spent = len(outcome.error.encode("utf-8")) + size(list(outcome.output))
    assert spent <= 2048 + len("[]")


async def test_what_was_left_out_is_told_on_top_and_order_is_call_order(catalog_guest):
    """LM-07."""
    code = "for (let i = 0; i < 4; i++) { const r = await big({n: 20000}); text(i + r.text) }"
    async with cells(catalog_guest, maxOutputBytes=65536) as open_:
        document = (await open_.exec(code)).to_dict()
        told = open_.cm.definitions()[0]["function"]["description"]
    assert document["truncated"] is True
    assert document["omittedBytes"] > 0
    kept = [entry["text"][0] for entry in document["output"] if entry.get("type") == "text"]
    assert kept == sorted(kept)
    assert kept[:3] == ["0", "1", "2"]
    assert "65536 bytes of output and value together" in told
