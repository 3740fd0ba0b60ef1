"""`results`: what a program keeps for later ones, and the reference to a value that was cut."""

import sys

import pytest

from toolcell import CodeMode, Completed, Failed, tool

pytestmark = pytest.mark.anyio


def code_mode(**options):
    return CodeMode(executor="quickjs", **options)


async def value(cm, code):
    outcome = await cm.exec(code)
    assert isinstance(outcome, Completed), outcome
    return outcome.value


@pytest.fixture
async def cm():
    @tool
    async def echo(v: str) -> str:
        """Say it again."""
        return v

    async with code_mode(tools=[echo]) as made:
        yield made


async def test_a_saved_value_is_described_loaded_and_deleted(cm):
    """BEHAVIOURS 363."""
    saved = await value(
        cm, "return await results.save(Array.from({length: 500}, (_, i) => ({id: i, t: 'x'})))"
    )
    assert set(saved) == {"id", "bytes", "count", "shape", "preview", "previewTruncated"}
    assert saved["id"].startswith("result_")
    assert (saved["count"], saved["shape"]) == (500, "Array<{ id, t }>")
    assert saved["previewTruncated"] is True
    loaded = await value(
        cm,
        f"""const rows = await results.load("{saved["id"]}"); rows[0].id = 9;
        return [rows.length, (await results.load("{saved["id"]}"))[0].id]""",
    )
    assert loaded == [500, 0]
    gone = f"""await results.delete("{saved["id"]}");
    try {{ await results.load("{saved["id"]}") }} catch (error) {{ return error.message }}"""
    assert (await value(cm, gone)).startswith("Code Mode result is unavailable or expired")


async def test_capacity_is_refused_and_nothing_is_evicted(cm):
    """LM-08, BEHAVIOURS 364."""
    code = """
    const ids = [];
    for (let i = 0; i < 64; i++) ids.push((await results.save({i})).id);
    let said = "";
    try { await results.save(1) } catch (error) { said = error.message }
    const first = await results.load(ids[0]);
    await results.delete(ids[1]);
    await results.save(1);
    return [said, first, ids.length];
    """
    said, first, count = await value(cm, code)
    assert said.startswith("Code Mode results capacity exceeded")
    assert (first, count) == ({"i": 0}, 64)


async def test_a_value_over_the_allowance_is_refused():
    """LM-08: the allowance is min(memoryLimitBytes, maxSnapshotBytes)."""
    config = {"tools": {"codeMode": {"maxSnapshotBytes": 4096}}}
    async with code_mode(config=config, mcp_servers=SERVERS) as cm:
        code = """
        const kept = await results.save("small");
        try { await results.save("x".repeat(8000)) } catch (error) {
          return [error.message, await results.load(kept.id)];
        }
        """
        said, kept = await value(cm, code)
        assert said.startswith("Code Mode results capacity exceeded")
        assert kept == "small"


async def test_results_belong_to_their_run(cm):
    """LM-08, rule 2.5."""
    saved = await value(cm, "return (await results.save('mine')).id")
    outcome = await cm.session("other").exec(f'return await results.load("{saved}")')
    assert isinstance(outcome, Failed)
    assert "belong to a different run or session" in outcome.error


async def test_an_oversized_value_can_be_loaded_by_its_reference(cm):
    """BEHAVIOURS 365, LM-01."""
    outcome = await cm.exec("return Array.from({length: 20000}, (_, i) => ({id: i}))")
    assert isinstance(outcome, Completed)
    assert outcome.value["truncated"] is True
    reference = outcome.value["reference"]
    code = f'const rows = await results.load("{reference}"); return [rows.length, rows[7].id]'
    assert await value(cm, code) == [20000, 7]
    text = await cm.exec("return 'x'.repeat(100000)")
    assert "reference" not in text.value


SERVERS = {"ware": {"command": sys.executable, "args": ["-m", "toolcell.testing.demo_mcp"]}}


async def test_provenance_follows_a_saved_result():
    """rule 4.9: what came from the network stays wrapped when another cell returns it."""
    async with code_mode(mcp_servers=SERVERS) as cm:
        code = "return (await results.save(await MCP.ware.listSites({}))).id"
        saved = await value(cm, code)
        result = await cm.call("exec", {"code": f'return await results.load("{saved}")'})
        assert "untrusted" in result.content[0].text.lower()
        clean = await cm.call("exec", {"code": "return (await results.save(1)).bytes"})
        assert "untrusted" not in clean.content[0].text.lower()
