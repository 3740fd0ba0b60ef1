"""A tool result that ends the turn: called directly, through Tool Search, from a program."""

import anyio
import pytest

from tests.agent.rig import ANY, ECHO, Rig, scope, tool
from tests.gateway.kit import config, gateway
from toolcell import CodeMode
from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.errors import CallError
from toolcell.protocol.hooks import Hooks, ReplaceDetails
from toolcell.protocol.messages import Message, ModelReply, ToolCall
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool

pytestmark = pytest.mark.anyio


async def hand_over(arguments, _context):
    details = {"to": arguments.get("to", "desk")}
    return ToolResult(content=(TextContent("handed over"),), details=details, terminate=True)


async def refuse(_arguments, _context):
    return ToolResult(content=(TextContent("no desk"),), is_error=True, terminate=True)


async def raising(_arguments, _context):
    raise CallError("no desk")


HAND_OVER, REFUSE = tool("hand_over", hand_over), tool("refuse", refuse)
TOOLS = [ECHO, HAND_OVER, REFUSE, tool("raising", raising)]
NEVER = "this is never asked for"


def remote(source, **more):
    made = Tool(name="hand_over", description="", parameters=ANY, execute=hand_over)
    group = Group.MCP if source == "mcp" else Group.CLIENT
    return SourcedTool(tool=made, source=source, owner="fx", group=group, **more)


async def test_the_model_is_not_asked_again():
    """BEHAVIOURS 333: the run is completed, with the result as its last message."""
    said = ModelReply(
        message=Message(
            role="assistant",
            text="One moment.",
            tool_calls=(ToolCall(id="c1", name="hand_over", arguments="{}"),),
        ),
        finish="tool_calls",
    )
    rig = Rig([said, NEVER], TOOLS)
    result = await rig.run()
    assert (result.status, result.text, result.turns) == ("completed", "One moment.", 1)
    assert result.finish == "stop"
    assert [m.role for m in result.messages] == ["user", "assistant", "tool"]
    assert result.messages[-1].text == "handed over"
    assert (await rig.types())[-2:] == ["message", "run_ended"]


async def test_the_conversation_goes_on_afterwards():
    """BEHAVIOURS 333: the next prompt stands behind the result that ended the turn."""
    rig = Rig([tool_call("hand_over", {}, id="c1"), "Hello again."], TOOLS)
    first = await rig.run()
    assert first.text == ""
    second = await rig.run("still there?", where=scope("r2"), history=first.messages)
    assert second.text == "Hello again."
    assert [m["role"] for m in rig.sent()] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("calls", "turns"),
    [
        (["hand_over", "hand_over"], 1),
        (["hand_over", "echo"], 2),
        (["hand_over", "raising"], 2),
        (["hand_over", "unheard_of"], 2),
        (["refuse"], 2),
    ],
)
async def test_only_when_every_call_of_the_reply_says_so_and_none_failed(calls, turns):
    """BEHAVIOURS 333: no result is left unread, and a failure is for the model to see."""
    first = [tool_call(name, {}, id=f"c{n}") for n, name in enumerate(calls)]
    result = await Rig([first, "done"], TOOLS).run()
    assert (result.status, result.turns) == ("completed", turns)


@pytest.mark.parametrize(
    "stranger",
    [
        remote("mcp", mcp=McpOrigin(server="fx", tool="hand_over")),
        remote("client"),
    ],
)
async def test_nothing_from_outside_ends_a_turn(stranger):
    """BEHAVIOURS 333: only local code may."""
    result = await Rig([tool_call("hand_over", {}), "done"], [stranger]).run()
    assert (result.text, result.turns) == ("done", 2)


async def test_a_hook_that_replaces_the_details_does_not_revive_the_turn():
    """BEHAVIOURS 285, 333."""
    masked = Hooks(after=[lambda _: ReplaceDetails(details={"to": "***"})])
    result = await Rig([tool_call("hand_over", {}), NEVER], TOOLS, hooks=masked).run()
    assert (result.turns, result.messages[-1].text) == (1, '{"to":"***"}')


async def conversed(tools, steps):
    """A run of the whole runtime, and how often the model was asked."""
    provider, sessions = ScriptedProvider(steps), MemorySessions()
    parts = Parts(tools=[each.tool for each in TOOLS], sinks=(sessions,), load_plugins=False)
    runtime = Runtime(parse_config({"tools": tools}), parts, Host())
    runtime.providers.add("s", provider)
    await runtime.start()
    try:
        with anyio.fail_after(60):
            turn = Turn(scope=runtime.scope(session_id="one"), prompt="go", model="s/m")
            return await converse(runtime, sessions, turn)
    finally:
        await runtime.aclose()


def called(name):
    return tool_call("tool_call", {"id": f"openclaw:core:{name}", "args": {}})


@pytest.mark.parametrize(("name", "turns"), [("hand_over", 1), ("echo", 2), ("refuse", 2)])
async def test_tool_call_preserves_it(name, turns):
    """BEHAVIOURS 333: what the target says holds for the control."""
    result = await conversed({"toolSearch": {"mode": "tools"}}, [called(name), "done"])
    assert (result.status, result.turns) == ("completed", turns)


async def test_a_tool_search_program_preserves_it():
    """BEHAVIOURS 333, 337: a body that failed afterwards is for the model to see."""
    call = "await openclaw.tools.call('openclaw:core:hand_over', {});"
    for code, turns in ((f"{call} return 1", 1), (f"{call} throw new Error('x')", 2)):
        steps = [tool_call("tool_search_code", {"code": code}), "done"]
        result = await conversed({"toolSearch": {"mode": "code"}}, steps)
        assert (result.status, result.turns) == ("completed", turns), result.messages


CELLS = {
    "return await hand_over({to: 'x'})": 1,
    "await echo({}); await hand_over({}); return await echo({})": 1,
    "await hand_over({}); throw new Error('x')": 2,
    "return await echo({})": 2,
}


@pytest.mark.parametrize("executor", ["node", "quickjs"])
@pytest.mark.parametrize("api", ["catalog", "tools"])
@pytest.mark.parametrize("code", CELLS)
async def test_a_completed_cell_preserves_it(executor, api, code):
    """BEHAVIOURS 333, rule 3.3: the run ends with the cell; a failed one goes to the model."""
    program = code
    if api == "tools":
        program = code.replace("hand_over(", "tools.hand_over(").replace("echo(", "tools.echo(")
    mode = {"enabled": True, "executor": executor, "guestApi": api}
    result = await conversed({"codeMode": mode}, [tool_call("exec", {"code": program}), "done"])
    assert (result.status, result.turns) == ("completed", CELLS[code]), result.messages


@pytest.mark.parametrize("executor", ["node", "quickjs"])
async def test_it_is_kept_while_a_cell_waits_and_is_no_part_of_its_json(executor):
    """BEHAVIOURS 333, rules 3.3, 3.5: a cell that waits is for the model to resume."""
    async with CodeMode(tools=[each.tool for each in TOOLS], executor=executor) as cm:
        code = "await hand_over({}); await yield_control(); return 7"
        parked = await cm.call("exec", {"code": code})
        assert (parked.details["status"], parked.terminate) == ("waiting", False)
        over = await cm.call("wait", {"runId": parked.details["runId"]})
        assert (over.details["value"], over.terminate) == (7, True)
        assert "terminate" not in over.details


async def test_a_client_of_the_gateway_gets_a_whole_answer(tmp_path):
    """BEHAVIOURS 333: an empty text with `stop`, streamed or not; there are no calls to run."""
    steps = [tool_call("hand_over", {}), tool_call("hand_over", {})]
    async with gateway(config(tmp_path), steps, tools=[HAND_OVER.tool]) as g:
        (choice,) = (await g.chat()).choices
        assert (choice.message.content, choice.finish_reason) == ("", "stop")
        assert choice.message.tool_calls is None
        pieces = [each.choices[0] async for each in await g.chat(stream=True) if each.choices]
        assert pieces[-1].finish_reason == "stop"
        assert len(g.model.bodies) == 2
