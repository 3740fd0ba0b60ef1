"""The end-to-end plans of both documents (rule 13), step by step, over real HTTP.

The official client before the gateway, the mock OpenAI provider behind it, and the command line for
the last step.
"""

import json
import re

import anyio
import pytest

from tests.gateway.kit import SELECT_FILE, config, gateway, tool
from tests.reports.rig import named_server
from toolcell.cli.main import run
from toolcell.plugin_sdk.define import define_tool_plugin
from toolcell.providers.scripted import tool_call
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel
from toolcell.tools.content import ToolResult
from toolcell.tools.decorator import tool as made_tool

pytestmark = pytest.mark.anyio

GUESTS = [(executor, api) for api in ("catalog", "tools") for executor in ("quickjs", "node")]
DOCK = named_server(
    {"name": "take_snapshot", "description": "Photograph the harbour."},
    {"name": "take-snapshot", "description": "Photograph the harbour twice."},
    {"name": "fetch", "description": "Fetch a freight paper. " + "z" * 2000},
)
STAMP = {
    "type": "function",
    "function": {"name": "stamp", "description": "The client's stamp.", "parameters": {}},
}
CLIENT_TOOLS = [SELECT_FILE, STAMP]


@made_tool
async def ship_list() -> list[str]:
    """List the ships in the harbour."""
    return ["Ada", "Berk"]


PLUGIN = define_tool_plugin(id="ship", name="Ship", description="Ships.", tools=[ship_list])


class Harbour:
    """The core tools of the plan."""

    def __init__(self):
        self.counted = 0
        self.late = anyio.Event()
        self.secrets = 0

    async def ledger(self, _arguments, _context):
        return ToolResult(details={"total": 7})

    async def count(self, _arguments, _context):
        self.counted += 1
        return ToolResult(details={"n": self.counted})

    async def slow(self, _arguments, _context):
        await self.late.wait()
        return ToolResult(details={"tag": "late"})

    async def nap(self, _arguments, _context):
        """Sleep until every parked cell has expired."""
        with anyio.fail_after(10):
            while self.parked():  # noqa: ASYNC110 - a count that tells nobody
                await anyio.sleep(0.05)
        return ToolResult(details={})

    async def secret(self, _arguments, _context):
        self.secrets += 1
        return ToolResult(details={})

    @property
    def tools(self):
        return [
            tool("ledger", self.ledger),
            tool("two words", self.ledger),
            tool("require", self.ledger),
            tool("stamp", self.secret),
            tool("count", self.count),
            tool("slow", self.slow),
            tool("secret_tool", self.secret),
            tool("message", catalog_mode="direct-only"),
            tool("nap", self.nap, catalog_mode="direct-only"),
        ]


class Script(ScriptedModel):
    """What the mock provider plays; the story goes on writing it."""

    def __init__(self):
        super().__init__([])

    def play(self, *steps):
        self._steps = (*[""] * len(self.bodies), *steps)


def settings(tmp_path, url, *, executor, api, enabled):
    code_mode = {
        "enabled": enabled,
        "executor": executor,
        "guestApi": api,
        "timeoutMs": 1200,
        "snapshotTtlSeconds": 1,
    }
    tools = {"codeMode": code_mode, "deny": ["secret_tool"]}
    return config(
        tmp_path,
        tools=tools,
        mcp={"servers": {"dock": DOCK}},
        models={"providers": {"up": {"baseUrl": url, "apiKey": "k-12345678"}}},
        agents={"defaults": {"model": "up/m"}},
    )


def last(body):
    return body["messages"][-1]["content"]


def go_on(body):
    """Wait for a cell that is not over (a busy machine is slow); else repeat its result."""
    text = last(body)
    result = result_of(text)
    return tool_call("wait", {"runId": result["runId"]}) if "runId" in result else text


class Story:
    """One agent that is told what to do, turn by turn."""

    def __init__(self, g, api):
        self.g = g
        self.api = api
        self.turns = 0

    def script(self, *steps):
        self.g.model.play(*steps)

    async def cell(self, code):
        """Have the model run a cell to its end; return the contract's result, as it reads it."""
        self.script(tool_call("exec", {"code": code}), *[go_on] * 5)
        return result_of(await self.turn())

    async def turn(self, text="go", session="plan"):
        """Send a user's message; make the client's tool calls as a client does."""
        headers = {"x-toolcell-session": session}
        messages = [{"role": "user", "content": text}]
        while True:
            got = await self.g.chat(messages=messages, tools=CLIENT_TOOLS, extra_headers=headers)
            choice = got.choices[0]
            if choice.finish_reason != "tool_calls":
                return choice.message.content
            messages = [
                {
                    "role": "tool",
                    "tool_call_id": call.id,
                    "content": json.dumps({"client": call.function.name}),
                }
                for call in choice.message.tool_calls
            ]


def result_of(text):
    """Read a result: the envelope, and the wrapped block when it came from the network."""
    head, _, wrapped = text.partition("\n")
    result = json.loads(head)
    if wrapped:
        result["outside"] = True
        body = re.search(r"^\{.*\}$", wrapped, re.MULTILINE).group(0)
        result.update(json.loads(body))
    return result


@pytest.mark.parametrize(("executor", "api"), GUESTS)
async def test_the_plan_over_http(tmp_path, capsys, executor, api):
    """rule 2.1, rule 2.2, rule 3.5, rule 3.6, rule 4.7, rule 4.8, rule 5.2, rule 8.3."""
    async with openai_server(Script()) as upstream:
        await code_mode_off(tmp_path, upstream, executor, api)
        harbour = Harbour()
        where = settings(tmp_path, upstream.base_url, executor=executor, api=api, enabled=True)
        parts = {"tools": harbour.tools, "plugins": [PLUGIN]}
        async with gateway(where, [], **parts) as g:  # step 4
            g.model = upstream.model
            story = Story(g, api)
            statistics = g.service.runtime.statistics
            harbour.parked = lambda: statistics()["continuations"]["parked"]
            story.script("hello")
            assert await story.turn() == "hello"  # step 5
            assert g.shown() == ["exec", "wait", "message", "nap"]  # step 6
            described = g.sent()["tools"][0]["function"]["description"]
            if api == "catalog":
                await bare_globals(story, described)
                await handles(story)
            else:
                await all_tools(story)
            await declarations(story)
            await (search_across(story) if api == "catalog" else mcp_namespace(story))
            await denied(story, harbour)
            await waiting_and_resumed(story, harbour)
            await cleaned_up(story)
            await nested_calls_under_their_parent(story)
    await anyio.to_thread.run_sync(exported, tmp_path, capsys)


async def code_mode_off(tmp_path, upstream, executor, api):
    """Steps 1 to 3: off, a small set of direct tools, and they are what they were."""
    where = settings(tmp_path, upstream.base_url, executor=executor, api=api, enabled=False)
    ledger = tool("ledger")
    tools = [ledger, tool("message", catalog_mode="direct-only")]
    async with gateway(where, [], tools=tools) as g:  # step 1
        g.model = upstream.model
        g.model.play("hello")
        assert (await g.chat("hi")).choices[0].message.content == "hello"  # step 2
        direct = {"ledger", "message"}
        assert {name for name in g.shown() if not name.startswith("dock")} == direct  # step 3
        assert len(g.shown()) == 5
        shown = [each["function"] for each in g.sent()["tools"]]
        (same,) = [each for each in shown if each["name"] == "ledger"]
        assert same["description"] == ledger.description
        assert "code" not in json.dumps(shown)


async def bare_globals(story, described):
    """Step 7: safe globals; normalised, reserved and colliding names as in the quick index."""
    code = """
    const native = catalog.all();
    const callable = native.filter((h) => typeof globalThis[h.callableName] === "function");
    return {
      core: await ledger({}), plugin: await ship_list({}), client: await stamp({}),
      names: native.map((h) => [h.toolName, h.callableName]), all: native.length,
      callable: callable.length, direct: typeof message, require: typeof require,
    };
    """
    got = (await story.cell(code))["value"]
    assert got["core"] == {"total": 7}
    assert got["plugin"] == ["Ada", "Berk"]
    assert got["client"] == {"client": "stamp"}
    names = dict(got["names"])
    assert got["callable"] == got["all"] == len(set(names.values()))
    assert names["two words"].isidentifier()
    assert names["require"] != "require"
    index = set(re.findall(r"(?m)^- (\S+) .* -> ", described))
    assert index == {name for own, name in names.items() if own not in ("select_file", "stamp")}
    assert (got["direct"], got["require"]) == ("undefined", "undefined")


async def handles(story):
    """Step 8: found, described and called without an exact id being seen."""
    code = """
    const said = [];
    for (const want of ["ledger", "list the ships in the harbour", "ask the user for a file"]) {
      const handle = (await catalog.search(want)).find((h) => h.source !== "mcp");
      const schemas = await handle.describe();
      said.push([handle.toolName, handle.source, typeof schemas.parameters, await handle({})]);
    }
    return {said, shown: JSON.stringify(catalog.all())};
    """
    got = (await story.cell(code))["value"]
    assert got["said"] == [
        ["ledger", "openclaw", "object", {"total": 7}],
        ["ship_list", "openclaw", "object", ["Ada", "Berk"]],
        ["select_file", "client", "object", {"client": "select_file"}],
    ]
    assert not re.search(r"openclaw:|client:app|mcp:", json.dumps(got))


async def all_tools(story):
    """Steps 7 and 8 with the tools API: every eligible tool by its exact id."""
    code = """
    const said = {};
    const ids = ["openclaw:core:ledger", "openclaw:ship:ship_list", "client:app:select_file"];
    for (const id of ids) {
      const found = ALL_TOOLS.find((t) => t.id === id);
      const described = await tools.describe(found.id);
      const whole = await tools.call(id, {});
      said[id] = [typeof described.parameters, await tools.callValue(id, {}), whole.tool.id];
    }
    const hits = await tools.search("list the ships in the harbour");
    return {said, first: hits[0].id, direct: ALL_TOOLS.some((t) => t.name === "message")};
    """
    got = (await story.cell(code))["value"]
    assert got["said"]["openclaw:core:ledger"][1:] == [{"total": 7}, "openclaw:core:ledger"]
    assert got["said"]["openclaw:ship:ship_list"][1] == ["Ada", "Berk"]
    assert got["said"]["client:app:select_file"][1] == {"client": "select_file"}
    assert (got["first"], got["direct"]) == ("openclaw:ship:ship_list", False)


async def declarations(story):
    """Step 9: files that describe the visible MCP tools, without a call."""
    code = """
    const files = await API.list("mcp");
    return {paths: files.map((f) => f.path), text: await API.read("mcp/dock.d.ts")};
    """
    result = await story.cell(code)
    value = result["value"]
    assert value["paths"] == ["mcp/index.d.ts", "mcp/dock.d.ts"]
    assert "function fetch(" in value["text"]
    assert "Photograph the harbour." in value["text"]
    assert result["telemetry"]["callCount"] == 0


async def search_across(story):
    """Step 10: native and MCP ranked together; names, bounds, wrapping; both paths agree."""
    code = """
    const native = catalog.all().length;
    const hits = await catalog.search("photograph the harbour");
    const mcp = hits.filter((h) => h.source === "mcp");
    const said = [];
    for (const h of mcp) said.push([h.callableName, (await h({})).structuredContent.name]);
    const [paper] = await catalog.search("fetch a freight paper");
    const named = {};
    for (const name of ["takeSnapshot", "takeSnapshot2", "fetch"]) {
      const call = MCP.dock[name];
      if (typeof call === "function") named[name] = (await call({})).structuredContent.name;
    }
    return {said, named, description: paper.description.length, input: paper.input,
            header: (await MCP.dock.$api("take-snapshot")).header,
            same: native === catalog.all().length};
    """
    result = await story.cell(code)
    got = result["value"]
    assert result["outside"]
    assert {name for _, name in got["said"]} == {"take_snapshot", "take-snapshot"}
    assert len({path for path, _ in got["said"]}) == 2
    for path, name in got["said"]:
        method = path.removeprefix("MCP.dock.")
        assert got["named"].get(method, name) == name
    assert got["named"]["fetch"] == "fetch"
    assert got["description"] <= 512
    assert (got["input"], got["same"]) == ("unknown", True)
    assert "Photograph the harbour twice." in got["header"]


async def mcp_namespace(story):
    """Step 10 with the tools API: by namespace, and in none of `ALL_TOOLS` and `tools.*`."""
    code = """
    const got = await MCP.dock.fetch({page: 1});
    let guessed = "ran";
    try { await tools.call("mcp:dock:fetch", {}); } catch (x) { guessed = x.code; }
    return {got: got.structuredContent, guessed, listed: ALL_TOOLS.some((t) => t.source === "mcp"),
            convenience: typeof tools.fetch};
    """
    result = await story.cell(code)
    got = result["value"]
    assert result["outside"]
    assert got["got"] == {"name": "fetch", "got": {"page": 1}}
    assert (got["guessed"], got["listed"]) == ("unknown_tool", False)
    assert got["convenience"] == "undefined"


async def denied(story, harbour):
    """Step 11: a denied tool is absent and cannot be called by a guess."""
    code = {
        "catalog": """
        const hits = await catalog.search("secret tool");
        return [typeof globalThis.secret_tool, hits.some((h) => h.toolName === "secret_tool")];
        """,
        "tools": """
        let guessed = "ran";
        const id = "openclaw:core:secret_tool";
        try { await tools.callValue(id, {}); } catch (x) { guessed = x.code }
        const listed = ALL_TOOLS.some((t) => t.name === "secret_tool");
        return [guessed === "unknown_tool" ? typeof tools.secret_tool : guessed, listed];
        """,
    }[story.api]
    assert (await story.cell(code))["value"] == ["undefined", False]
    assert "secret_tool" not in json.dumps(story.g.sent()["tools"])
    assert harbour.secrets == 0


async def waiting_and_resumed(story, harbour):
    """Steps 12 to 14: a call outlives `exec`; `wait` delivers it; nothing is replayed."""
    call = {"catalog": "", "tools": "tools."}[story.api]
    code = (
        f"await {call}count({{}}); text('before'); const r = await {call}slow({{}});"
        " text('after ' + r.tag); return 'end'"
    )
    seen = []

    def resume(body):
        result = result_of(last(body))
        seen.append(result)
        if result["status"] != "waiting":
            return "it is " + json.dumps(result)
        harbour.late.set()
        return tool_call("wait", {"runId": result["runId"]})

    story.script(tool_call("exec", {"code": code}, id="long"), resume, resume, resume)
    answer = await story.turn(session="long")
    first, final = seen[0], seen[-1]
    assert (first["status"], first["reason"]) == ("waiting", "pending_tools")
    assert (final["status"], final["value"]) == ("completed", "end")
    assert "after late" in answer
    assert harbour.counted == 1


async def cleaned_up(story):
    """Step 15: timeout, abort and expiry leave no state."""
    g = story.g
    assert (await story.cell("for (;;);"))["code"] == "timeout"
    park = tool_call("exec", {"code": "await yield_control('hold'); return 1"})

    async def idle():
        state = (await g.get("/api/health")).json()["statistics"]
        return state["continuations"]

    def wait_again(body):
        said = [m["content"] for m in body["messages"] if m["role"] == "tool"]
        parked = next(text for text in said if '"waiting"' in text)
        return tool_call("wait", {"runId": result_of(parked)["runId"]})

    # Abort: the run is cancelled while its cell is parked and the client owes an answer.
    call = {"catalog": "select_file({})", "tools": "tools.select_file({})"}[story.api]
    story.script(tool_call("exec", {"code": f"await {call}"}))
    await g.chat(tools=CLIENT_TOOLS, extra_headers={"x-toolcell-session": "aborted"})
    runs = (await g.get("/api/runs")).json()["runs"]
    cancelled = await g.post(f"/api/runs/{runs[0]['id']}/cancel")
    assert cancelled.json()["status"] == "cancelled"
    assert (await idle())["parked"] == 0

    # Expiry: the model comes back when the time to live is over.
    story.script(park, tool_call("nap", {}), wait_again, last)
    gone = result_of(await story.turn(session="expired"))
    assert (gone["code"], gone["error"]) == (
        "invalid_input",
        "code mode run is unavailable or expired.",
    )
    assert await idle() == {"parked": 0, "claimed": 0, "slots": 0}


async def nested_calls_under_their_parent(story):
    """Step 16: nested calls stand under the code-mode call that made them."""
    document = (await story.g.get("/api/sessions/long")).json()
    outer = next(call for call in document["calls"] if call["callId"] == "long")
    assert [child["toolName"] for child in outer["children"]] == ["count", "slow"]
    assert {child["parentToolCallId"] for child in outer["children"]} == {"long"}
    shown = [entry for entry in document["transcript"] if entry["type"] == "activity"]
    assert [entry["toolId"] for entry in shown] == ["openclaw:core:count", "openclaw:core:slow"]
    messages = (await story.g.get("/api/sessions/long/messages")).json()["messages"]
    called = {call["name"] for each in messages for call in each.get("toolCalls", ())}
    assert called == {"exec", "wait"}


def exported(tmp_path, capsys):
    """Step 16, as a person does it: exported, looked into, and the cell replayed."""
    file, bundle = tmp_path / "toolcell.json", tmp_path / "bundle"
    file.write_text(json.dumps({"sessions": {"path": str(tmp_path / "sessions.db")}}))
    command = ["sessions", "export-trajectory", "long", "--out", str(bundle)]
    assert run([*command, "--config", str(file)]) == 0
    calls = [json.loads(line) for line in (bundle / "calls.jsonl").read_text().splitlines()]
    assert [call["toolName"] for call in calls] == ["exec", "wait"]
    assert [child["toolName"] for child in calls[0]["children"]] == ["count", "slow"]
    assert {child["parentToolCallId"] for child in calls[0]["children"]} == {"long"}
    capsys.readouterr()
    assert run(["replay", str(bundle)]) == 0
    assert capsys.readouterr().out.startswith("same ")
