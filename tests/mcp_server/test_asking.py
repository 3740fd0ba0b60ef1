"""The user of an MCP client is asked through it: the SDK's own client, over stdio and HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult, ElicitResult, ErrorData

from tests.codemode.support import GroupSpawner
from tests.mcp_server.serving import Home, http, stdio, until
from toolcell.calls.redaction import Redactor
from toolcell.mcp_server.asking import ClientApprover
from toolcell.mcp_server.rounds import MAX_ATTENDED, Round, Rounds
from toolcell.protocol.approvals import ApprovalRequest
from toolcell.protocol.scope import RunScope

pytestmark = pytest.mark.anyio

ASK = ({"tool": "add", "decision": "ask", "reason": "sums are\u202e secret"},)
ADD = "return await add({a: 1, b: 2})"
TRY = "try { return await add({a: 1, b: 2}) } catch (e) { return 'refused: ' + e.message }"
BOTH = pytest.mark.parametrize("door", ["stdio", "http"])
ALL = pytest.mark.parametrize("door", ["stdio", "http", "2026"])
"""The revisions with a handshake over both transports, and the one without over stdio."""


class Person:
    """Answers what the client is asked, one answer after the other; the last one again."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.let_go = anyio.Event()

    async def __call__(self, _context: Any, params: Any) -> Any:
        self.asked.append(params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "silence":
            await self.let_go.wait()
            return chosen("once")
        return answer


def chosen(decision: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": decision})


@asynccontextmanager
async def client_of(door: str, home: Home, asked: Any, *words: str) -> AsyncIterator[Client]:
    if door != "http":
        mode = "auto" if door == "2026" else "legacy"
        async with stdio(home, *words, mode=mode, asked=asked) as client:
            yield client
        return
    with http(home, "--approvals", "client", *words) as web:
        async with Client(web.url, mode="legacy", elicitation_callback=asked) as client:
            yield client


async def said(client: Client, code: str) -> dict[str, Any]:
    with anyio.fail_after(30):
        return (await client.call_tool("exec", {"code": code})).structured_content


async def warm(client: Client) -> None:
    """Run cells until the engine is there: the first ones load it within their own time."""
    with anyio.fail_after(60):
        while (await said(client, "return 1"))["status"] != "completed":
            pass


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, approvals=ASK).prepare()


@ALL
async def test_a_yes_lets_the_call_run_and_the_question_says_what_it_is(
    home: Home, door: str
) -> None:
    """rule 3.5, PO-06: the tool, the reason and the arguments; one form with three answers."""
    person = Person(chosen("once"))
    async with client_of(door, home, person) as client:
        assert (await said(client, ADD))["value"] == {"sum": 3}
        assert (await said(client, ADD))["value"] == {"sum": 3}
    first, _second = person.asked
    assert first.message == (
        'openclaw:tests:add wants to run (sums are\ufffd secret) with:\n{"a":1,"b":2}'
    )
    form = first.requested_schema["properties"]["decision"]
    assert form["enum"] == ["deny", "once", "session"]
    assert len(form["enumNames"]) == 3
    assert first.requested_schema["required"] == ["decision"]


@ALL
async def test_a_yes_for_the_session_is_asked_once_and_holds_for_that_tool(
    home: Home, door: str
) -> None:
    """rule 3.5, rule 2.5: another client, and another tool, are asked again."""
    person = Person(chosen("session"), chosen("deny"))
    async with client_of(door, home, person) as client:
        code = "return [await add({a: 1, b: 2}), await add({a: 3, b: 4})]"
        assert (await said(client, code))["value"] == [{"sum": 3}, {"sum": 7}]
        assert len(person.asked) == 1
        shell = "try { return await exec({command: 'id'}) } catch (e) { return e.message }"
        assert "the client's user denied it" in (await said(client, shell))["value"]
        assert len(person.asked) == 2


@pytest.mark.parametrize("words", [(), ("--approvals", "none")])
async def test_over_http_clients_approve_nothing_unless_the_operator_said_so(
    home: Home, words: tuple[str, ...]
) -> None:
    """rule 3.5: whoever connects must not be the one who decides."""
    person = Person(chosen("once"))
    with http(home, *words) as web:
        async with Client(web.url, mode="legacy", elicitation_callback=person) as client:
            outcome = await said(client, ADD)
    assert "--approvals client" in str(outcome)
    assert person.asked == []


async def test_a_yes_for_the_session_of_one_client_is_none_for_another(home: Home) -> None:
    """rule 2.5."""
    with http(home, "--approvals", "client") as web:
        for decision, answer in (("session", {"sum": 3}), ("deny", None)):
            person = Person(chosen(decision))
            async with Client(web.url, mode="legacy", elicitation_callback=person) as client:
                outcome = await said(client, ADD)
                assert outcome.get("value") == answer
                assert len(person.asked) == 1


REFUSALS = (
    (chosen("deny"), "the client's user denied it"),
    (ElicitResult(action="decline"), "the client's user denied it"),
    (ElicitResult(action="cancel"), "closed the question without an answer"),
    (ElicitResult(action="accept"), "no usable answer"),
    (chosen("yes"), "no usable answer"),
    (chosen(True), "no usable answer"),
    (chosen(["once"]), "no usable answer"),
)


@ALL
async def test_everything_else_is_a_no(home: Home, door: str) -> None:
    """rule 3.5, PO-07: closed."""
    person = Person(*(answer for answer, _ in REFUSALS))
    async with client_of(door, home, person) as client:
        for answer, why in REFUSALS:
            outcome = await said(client, TRY)
            assert outcome["value"].startswith("refused: "), (answer, outcome)
            assert why in outcome["value"], answer
    assert len(person.asked) == len(REFUSALS)


@BOTH
async def test_an_error_is_a_no_and_its_words_stay_outside(home: Home, door: str) -> None:
    """rule 4.9: nothing that the client wrote reaches the model."""
    bad = ErrorData(code=-1, message="S3CR3T instructions")
    async with client_of(door, home, Person(bad)) as client:
        outcome = await said(client, TRY)
        assert "no usable answer" in outcome["value"]
        assert "S3CR3T" not in str(outcome)


@BOTH
async def test_silence_is_a_no_after_a_while_also_for_those_in_line(
    tmp_path: Path, door: str
) -> None:
    """rule 3.5: one question at a time, and none of them waits longer than the limit."""
    home = Home(tmp_path, approvals=ASK, answer_seconds=1).prepare()
    person = Person("silence")
    async with client_of(door, home, person) as client:
        outcome = await said(
            client, f"return await Promise.all([1, 2, 3].map(async () => {{{TRY}}}))"
        )
        assert len(outcome["value"]) == 3
        assert all("did not answer within 1 seconds" in each for each in outcome["value"])
        assert len(person.asked) == 1


@BOTH
async def test_a_cell_that_waits_for_a_person_goes_on_with_wait_and_asks_once(
    tmp_path: Path, door: str
) -> None:
    """rule 3.5: the answer may come after the request that the question went out with."""
    home = Home(tmp_path, approvals=ASK, code_mode={"timeoutMs": 1500}).prepare()
    person = Person("silence")
    async with client_of(door, home, person) as client:
        await warm(client)
        outcome = await said(client, ADD)
        assert outcome["status"] == "waiting", outcome
        assert (outcome["status"], outcome["reason"]) == ("waiting", "pending_tools")
        again = await client.call_tool("wait", {"runId": outcome["runId"]})
        assert again.structured_content["status"] == "waiting"
        person.let_go.set()
        with anyio.fail_after(20):
            while outcome["status"] == "waiting":
                call = await client.call_tool("wait", {"runId": outcome["runId"]})
                outcome = call.structured_content
        assert outcome["value"] == {"sum": 3}
        assert len(person.asked) == 1


@BOTH
async def test_cancelling_the_request_withdraws_the_question(home: Home, door: str) -> None:
    """rule 3.5: the call was aborted; the next one asks anew."""
    person = Person("silence", chosen("once"))
    async with client_of(door, home, person) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "exec", {"code": ADD})
            await until(lambda: person.asked)
            tasks.cancel_scope.cancel()
        assert (await said(client, ADD))["value"] == {"sum": 3}


@ALL
async def test_a_client_without_elicitation_is_told_what_to_do(home: Home, door: str) -> None:
    """Issue 4, part 5: refused at once, as before."""
    async with client_of(door, home, None) as client:
        outcome = await said(client, TRY)
        assert "offers no elicitation" in outcome["value"]
        assert "tools.approvals.rules" in outcome["value"]


@ALL
async def test_tool_search_asks_as_well(home: Home, door: str) -> None:
    """rule 10.6: through tool_call, without any cell."""
    for decision, failed in (("once", False), ("deny", True)):
        person = Person(chosen(decision))
        async with client_of(door, home, person, "--surface", "tools") as client:
            given = {"id": "openclaw:tests:add", "args": {"a": 1, "b": 2}}
            result = await client.call_tool("tool_call", given)
            assert (result.is_error, len(person.asked)) == (failed, 1)


async def test_in_the_2026_revision_a_waiting_cell_gets_a_late_answer_too(tmp_path: Path) -> None:
    """rule 3.5: `exec` is over when the user answers; the program goes on with it."""
    home = Home(tmp_path, approvals=ASK, code_mode={"timeoutMs": 1500}).prepare()
    person = Person("silence")
    async with client_of("2026", home, person) as client:
        await warm(client)
        async with anyio.create_task_group() as tasks:
            outcome: dict[str, Any] = {}

            async def run() -> None:
                outcome.update(await said(client, ADD))

            tasks.start_soon(run)
            await until(lambda: person.asked)
            await anyio.sleep(2)  # longer than the cell has; nothing tells when it is parked
            person.let_go.set()
        assert outcome["status"] == "waiting", outcome
        with anyio.fail_after(20):
            while outcome["status"] == "waiting":
                call = await client.call_tool("wait", {"runId": outcome["runId"]})
                outcome = call.structured_content
        assert outcome["value"] == {"sum": 3}
        assert len(person.asked) == 1


async def test_in_the_2026_revision_silence_is_a_no_as_well(tmp_path: Path) -> None:
    """rule 3.5: the call is decided without the client; an answer after that changes nothing."""
    home = Home(tmp_path, approvals=ASK, answer_seconds=1).prepare()
    person = Person("silence")
    async with client_of("2026", home, person) as client:
        async with anyio.create_task_group() as tasks:
            outcome: dict[str, Any] = {}

            async def run() -> None:
                outcome.update(await said(client, TRY))

            tasks.start_soon(run)
            await until(lambda: person.asked)
            await anyio.sleep(2)  # longer than the question waits
            person.let_go.set()
        assert "did not answer within 1 seconds" in outcome["value"]


async def test_in_the_2026_revision_a_state_is_good_for_its_own_call_and_once(home: Home) -> None:
    """rule 3.5: what the client sends back is checked; a question left out has no answer."""
    async with client_of("2026", home, Person("never asked")) as client:

        async def send(code: str, state: str | None = None, **answers: Any) -> Any:
            return await client.session.call_tool(
                "exec",
                {"code": code},
                input_responses=answers or None,
                request_state=state,
                allow_input_required=True,
            )

        for wrong in ("forged", "x" * 100_000):
            with pytest.raises(MCPError, match="unknown, or over"):
                await send(TRY, wrong)
        asked = await send(TRY)
        (key,) = asked.input_requests
        with pytest.raises(MCPError, match="another name or other arguments"):
            await send("return 1", asked.request_state, **{key: chosen("once")})
        over = await send(TRY, asked.request_state, other=chosen("once"))
        assert "no usable answer" in over.structured_content["value"]
        with pytest.raises(MCPError, match="unknown, or over"):
            await send(TRY, asked.request_state, **{key: chosen("once")})


async def test_in_the_2026_revision_calls_nobody_goes_on_with_are_given_up() -> None:
    """rule 3.8: 64 are kept between two requests; the oldest is cancelled."""
    ended: list[str] = []

    def work(name: str) -> Any:
        async def ask(made: Round) -> Any:
            try:
                await made.ask("?", {"type": "object", "properties": {}})
            finally:
                ended.append(name)

        return ask

    async with anyio.create_task_group() as tasks:
        rounds = Rounds(GroupSpawner(tasks))
        for number in range(66):
            params = CallToolRequestParams(name=f"t{number}")
            answer = await rounds.take(params, None, work(f"t{number}"))
            assert answer.result_type == "input_required"
        await anyio.wait_all_tasks_blocked()
        assert ended == ["t0", "t1"]
        rounds.end()
    assert len(ended) == 66


async def test_in_the_2026_revision_one_request_at_a_time_attends_a_call() -> None:
    """rule 3.8: a second one is refused, and takes nothing along when it goes."""
    gate, done = anyio.Event(), []
    allowed = {"approval-1": chosen("once")}

    async def work(made: Round) -> Any:
        await made.ask("?", {"type": "object", "properties": {}})
        await gate.wait()
        return CallToolResult(content=[])

    async with anyio.create_task_group() as tasks:
        rounds = Rounds(GroupSpawner(tasks))
        asked = await rounds.take(CallToolRequestParams(name="t"), None, work)
        again = CallToolRequestParams(
            name="t", request_state=asked.request_state, input_responses=allowed
        )

        async def first() -> None:
            done.append(await rounds.take(again, None, work))

        tasks.start_soon(first)
        await anyio.wait_all_tasks_blocked()
        for _ in range(3):
            with pytest.raises(MCPError, match="another request with this requestState is open"):
                await rounds.take(again, None, work)
        gate.set()
    assert [type(each) for each in done] == [CallToolResult]


async def test_in_the_2026_revision_a_flood_of_open_calls_is_refused() -> None:
    """rule 3.8."""

    async def never(_made: Round) -> Any:
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        rounds = Rounds(GroupSpawner(tasks))
        for _ in range(MAX_ATTENDED):
            tasks.start_soon(rounds.take, CallToolRequestParams(name="t"), None, never)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(MCPError, match="wait until one is over"):
            await rounds.take(CallToolRequestParams(name="t"), None, never)
        tasks.cancel_scope.cancel()


ELICITS = {"elicitation": {}}
WRONG = [
    {"result": {"action": "accept", "content": "once"}},
    {"result": {"action": "allow", "content": {"decision": "once"}}},
    {"result": {"action": "accept", "content": {"decision": {"once": True}}}},
    {"result": {}},
    {"result": {"content": {"decision": "once"}}},
]


async def test_an_answer_that_breaks_the_protocol_is_a_no(home: Home) -> None:
    """rule 3.5: by hand over HTTP, as a client that means ill would write it."""
    headers = {"Accept": "application/json, text/event-stream"}
    with http(home, "--approvals", "client") as web:
        async with httpx2.AsyncClient(timeout=20) as raw:

            async def post(message: Any) -> Any:
                return await raw.post(web.url, json={"jsonrpc": "2.0", **message}, headers=headers)

            async def outcome_after(answer: Any, number: int) -> Any:
                call = {"name": "exec", "arguments": {"code": TRY}}
                body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
                async with raw.stream("POST", web.url, json=body, headers=headers) as stream:
                    async for line in stream.aiter_lines():
                        if not line.startswith("data: {"):
                            continue
                        message = json.loads(line.removeprefix("data: "))
                        if message.get("method") == "elicitation/create":
                            await post({"id": message["id"], **answer})
                        elif message.get("id") == number:
                            return message["result"]["structuredContent"]
                return pytest.fail("the stream ended without a result")

            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": ELICITS,
                "clientInfo": {"name": "t", "version": "0"},
            }
            first = await post({"id": 1, "method": "initialize", "params": hello})
            headers["Mcp-Session-Id"] = first.headers["mcp-session-id"]
            await post({"method": "notifications/initialized"})
            for number, answer in enumerate(WRONG, start=2):
                outcome = await outcome_after(answer, number)
                assert "no usable answer" in outcome["value"], answer


def question(**arguments: Any) -> ApprovalRequest:
    return ApprovalRequest(
        approval_id="a1",
        scope=RunScope(agent_id="main", session_id="s", session_key="k", run_id="r"),
        call_id="c1",
        parent_id=None,
        tool_id="mcp:fx:" + "x\x1b[31m" * 200,
        tool_name="x",
        arguments=arguments,
        reason="because",
    )


class Shown:
    """A channel that keeps what it was asked."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def ask(self, message: str, _form: Any) -> Any:
        self.messages.append(message)
        return {"action": "decline"}


async def test_what_a_person_reads_is_bounded_printable_and_without_secrets() -> None:
    """rule 8.4, rule 4.9: arguments and names may be hostile, and hold what must not be seen."""
    approver, channel = ClientApprover(Redactor(["hunter2-hunter2"])), Shown()
    desk = approver.join("s")
    with desk.open_over(channel):
        asked = question(key="hunter2-hunter2", text="\u202eevil\n\nyes " + "x" * 100_000)
        assert (await approver.request(asked)).approved is False
    (message,) = channel.messages
    assert "hunter2" not in message
    assert len(message) < 3_000
    assert "characters in all)" in message
    assert message.count("\n") == 1
    assert message.replace("\n", "").isprintable()


async def test_a_call_between_two_requests_is_asked_over_the_next_one() -> None:
    """rule 3.5: a queued call may begin when no request of the client is open."""
    approver = ClientApprover(Redactor())
    desk, channel = approver.join("s"), Shown()
    with desk.open_over(channel):
        pass
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(approver.request, question())
        await anyio.wait_all_tasks_blocked()
        assert channel.messages == []
        with desk.open_over(channel), anyio.fail_after(5):
            while not channel.messages:
                await anyio.lowlevel.checkpoint()


async def test_the_calls_of_others_are_nobodys() -> None:
    """rule 2.5: a session that left, or never was."""
    approver = ClientApprover(Redactor())
    with approver.join("s").open_over(Shown()):
        approver.leave("s")
        answer = await approver.request(question())
    assert (answer.approved, "no client can be asked" in answer.reason) == (False, True)
