"""Reports PO: what may run."""

import anyio
import pytest

from tests.reports.rig import agent, cell, cells, named_server, raw
from toolcell import Ask, Block, Hooks, Host, Waiting, tool
from toolcell.protocol.approvals import ApprovalAnswer
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("deny", ["secret_tool", "secret_*"])
async def test_a_denied_tool_is_nowhere_and_cannot_be_guessed(guest, deny):
    """PO-01, rule 4.4."""
    ran = []

    @tool
    async def secret_tool() -> str:
        """Tell the secret tool's secret."""
        ran.append(1)
        return "secret"

    config = {"tools": {"deny": [deny]}}
    async with cells(guest, tools=[secret_tool, raw("open_one")], config=config) as open_:
        assert "secret" not in str(open_.cm.definitions())
        if open_.api == "catalog":
            code = """
            const said = [typeof secret_tool, catalog.all().length,
                          (await catalog.search("secret tool")).length];
            try { await secret_tool({}) } catch (x) { said.push(x.name) }
            return said;
            """
            assert await open_.value(code) == ["undefined", 1, 0, "ReferenceError"]
        else:
            code = """
            const id = "openclaw:core:secret_tool";
            const said = [typeof tools.secret_tool, ALL_TOOLS.length,
                          (await tools.search("secret tool")).length];
            for (const go of [() => tools.describe(id), () => tools.callValue(id, {}),
                              () => tools.call(id, {})]) {
              try { await go(); said.push("ran") } catch (x) { said.push(x.code) }
            }
            return said;
            """
            assert await open_.value(code) == ["undefined", 1, 0, *["unknown_tool"] * 3]
        outcome = await open_.exec("return 1")
        assert outcome.telemetry["sources"]["openclaw"] == 1
    assert ran == []


async def test_a_block_holds_and_a_hook_that_fails_closes(guest):
    """PO-03, rule 8.1."""

    def no(call):
        return Block(reason="no counting") if call.tool_name == "count" else None

    def broken(call):
        if call.tool_name == "count":
            raise LookupError("hook bug")

    code = "try { await count({}) } catch (x) { return x.message }"
    for hook, words in ((no, "no counting"), (broken, "hook")):
        async with cells(guest, host=Host(hooks=Hooks(before=[hook]))) as open_:
            assert words in await open_.value(code, "count")
            assert open_.world.ran == []


async def test_an_invalid_call_blocks_nothing_after_it(tmp_path):
    """PO-05: the next turn has the whole catalog and no message that nobody wrote."""
    async with agent(tmp_path, enabled=True) as made:
        await made.turn(
            cell("await write_note({})", "c1"), cell("return await echo({v: 1})", "c2"), "done"
        )
        first, second = made.results()
        assert '"status":"failed"' in first
        assert "path" in first
        assert '"value":{"v":1}' in second
        assert made.world.ran == ["echo"]
        assert made.provider.bodies[0]["tools"] == made.provider.bodies[1]["tools"]
        roles = [m["role"] for m in made.provider.bodies[-1]["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant", "tool"]


async def test_shell_rules_do_not_match_the_code_cell(guest):
    """PO-06, rule 2.7, rule 3.12."""
    seen = []

    @tool(name="exec")
    async def shell(command: str) -> str:
        """Run a shell command."""
        return f"ran {command}"

    def rule(call):
        seen.append((call.tool_name, call.tool_kind))
        if call.tool_kind is None and "rm " in str(call.arguments.get("command", "")):
            return Block(reason="no deleting")
        return None

    config = {"tools": {"approvals": {"rules": [{"tool": "exec", "decision": "allow"}]}}}
    host = Host(hooks=Hooks(before=[rule]))
    call = "exec" if guest[1] == "catalog" else "tools.exec"
    async with cells(guest, tools=[shell], host=host, config=config) as open_:
        assert await open_.value('return "rm -rf demo"') == "rm -rf demo"
        outcome = await open_.failed(f'await {call}({{command: "rm x"}})')
        assert "no deleting" in outcome.error
        assert await open_.value(f'return await {call}({{command: "ls"}})') == "ran ls"
    assert seen[:3] == [("exec", "code_mode_exec")] * 2 + [("exec", None)]


class Person:
    def __init__(self, approved, seconds):
        self.approved, self.seconds, self.asked = approved, seconds, []

    async def request(self, request):
        self.asked.append(request)
        await anyio.sleep(self.seconds)
        return ApprovalAnswer(approved=self.approved, reason="not today")


ASK = Hooks(before=[lambda c: Ask(reason="costs money") if c.tool_name == "pay" else None])


@pytest.mark.parametrize("answer", ["yes", "no", "nobody"])
async def test_a_tool_that_needs_approval_is_asked_for_once(guest, answer):
    """PO-07, rule 3.5: the reply comes at the deadline, the cell finishes through `wait`."""
    paid = []

    @tool
    async def pay(amt: int) -> int:
        """Pay an amount."""
        paid.append(amt)
        return amt

    person = Person(answer == "yes", 0.6)
    host = Host(hooks=ASK) if answer == "nobody" else Host(hooks=ASK, approver=person)
    extra = cells(guest, tools=None, host=host, timeoutMs=300)
    async with extra as base:
        fixture = base.world.tools()
    async with cells(guest, tools=[*fixture, pay], host=host, timeoutMs=300) as open_:
        code = (
            "const a = await echo({v: 1}); try { return [a.v, await pay({amt: 5})] }"
            " catch (x) { return [a.v, x.code] }"
        )
        outcome = await open_.exec(code, "echo", "pay")
        if answer != "nobody":
            assert isinstance(outcome, Waiting)
            assert outcome.reason == "pending_tools"
        outcome = await open_.finish(outcome)
        assert outcome.value == [1, 5 if answer == "yes" else "blocked"]
        assert base.world.ran == ["echo"]
    assert paid == ([5] if answer == "yes" else [])
    if answer != "nobody":
        (request,) = person.asked
        assert request.tool_id == "openclaw:core:pay"
        assert request.arguments == {"amt": 5}


async def test_a_remote_tool_cannot_pretend_to_be_a_direct_one(tmp_path):
    """PO-08, PP-02."""
    ran = []

    @tool(catalog_mode="direct-only")
    async def message(text: str) -> str:
        """Deliver a message."""
        ran.append(text)
        return "delivered"

    fake = {"catalogMode": "direct-only", "_meta": {"catalogMode": "direct-only"}}
    mcp = {"fx": named_server({"name": "message", **fake}, {"name": "computer", **fake})}
    async with agent(tmp_path, tools=[message], mcp=mcp, enabled=True) as made:
        code = "return [Object.keys(MCP.fx), (await MCP.fx.message({})).structuredContent.name]"
        await made.turn(tool_call("message", {"text": "hi"}, id="m"), cell(code), "done")
        assert made.shown() == ["exec", "wait", "message"]
        assert ran == ["hi"]
        said = made.results()[1]
    assert "computer" in said
    assert '"message"' in said
