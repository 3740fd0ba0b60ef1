"""What clients send to do harm: bodies, connections, readers that do not read (SECURITY.md)."""

import json
import logging
import socket

import anyio
import pytest

from tests.gateway.kit import QUICKJS, SELECT_FILE, TOKEN, config, gateway, until
from toolcell.gateway import server
from toolcell.protocol.events import Diagnostic
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio

SAYS = b'{"model":"main","messages":[{"role":"user","content":"x"}],'
ASKS = b'{"model":"main","input":"x",'


class Told:
    """A sink that keeps diagnostics."""

    def __init__(self):
        self.messages = []

    def emit(self, event):
        if isinstance(event, Diagnostic):
            self.messages.append(event.message)


def raw(g):
    """Return a connection of its own to a gateway."""
    host, _, port = g.url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)))


def health(connection):
    """Ask for `/health` over a connection and read the whole answer."""
    connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    read = b""
    while b'{"status":"ok"}' not in read:
        piece = connection.recv(4096)
        assert piece, read
        read += piece
    return read


def request(body):
    """Return a chat request as it goes over a socket."""
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", SAYS + b'"temperature":NaN}'),
        ("chat/completions", SAYS + b'"temperature":1e999}'),
        ("chat/completions", SAYS + b'"logit_bias":{"a":-Infinity}}'),
        (
            "chat/completions",
            SAYS + b'"tools":[{"type":"function","function":{"name":"f","parameters":{"x":NaN}}}]}',
        ),
        ("chat/completions", SAYS + b'"modalities":[{}]}'),
        ("chat/completions", SAYS + b'"modalities":7}'),
        ("chat/completions", b'{"messages":[{"role":"user","content":[{"type":["text"]}]}]}'),
        ("chat/completions", b'{"messages":[{"role":"user","content":[{"type":{}}]}]}'),
        ("responses", ASKS + b'"top_p":1e400}'),
        ("responses", b'{"input":[{"type":["message"]}]}'),
        ("responses", b'{"input":[{"role":"user","content":[{"type":[]}]}]}'),
    ],
)
async def test_a_body_that_is_wrong_anywhere_is_a_400_and_no_fault_of_the_gateway(
    tmp_path, path, body
):
    told = Told()
    async with gateway(config(tmp_path), ["never said"], sinks=(told,)) as g:
        kind = {"content-type": "application/json"}
        answer = await g.http.post(f"/v1/{path}", content=body, headers=kind)
        assert g.model.requests == []
    assert answer.status_code == 400, answer.text
    assert told.messages == []


async def test_a_field_that_is_missing_is_named_as_it_is_written(tmp_path):
    async with gateway(config(tmp_path), []) as g:
        answer = await g.post("/api/conversations/send", {"message": "x"})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "conversationRef")
    assert error["message"] == "conversationRef: Field required"


@pytest.mark.parametrize("text", ['{"a": NaN}', "[1e999]"])
async def test_a_result_of_a_client_that_is_no_json_is_its_text(tmp_path, text):
    """docs/gateway.md: a JSON object or array is the value; other text is the value itself."""

    def step(said):
        if said.messages[-1].role == "user":
            return tool_call("exec", {"code": "return await select_file({})"})
        return said.messages[-1].text

    settings = config(tmp_path, tools={"codeMode": QUICKJS})
    async with gateway(settings, [step] * 2) as g:
        first = await g.chat(tools=[SELECT_FILE])
        call = first.choices[0].message.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": text}
        messages = [{"role": "user", "content": "go"}, first.choices[0].message, result]
        second = await g.chat(messages=messages, tools=[SELECT_FILE])
    said = second.choices[0].message.content
    assert '"status":"completed"' in said
    assert json.dumps(text) in said


async def test_a_connection_that_sends_no_request_is_ended(tmp_path, monkeypatch):
    """A byte now and then keeps it open in Uvicorn for ever, without a token."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 1.5)
    async with gateway(config(tmp_path), []) as g:
        silent, slow, second = raw(g), raw(g), raw(g)
        await anyio.to_thread.run_sync(health, second)
        second.sendall(b"G")  # in the middle of the next head
        slow.sendall(b"GET /health HTTP/1.1\r\nx: ")
        for each in (silent, slow, second):
            each.setblocking(False)

        async def ended():
            gone = 0
            for each in (silent, slow, second):
                try:
                    each.send(b"y" if each is slow else b"")
                    gone += each.recv(64) == b""
                except BlockingIOError:
                    pass
                except OSError:
                    gone += 1
            return gone

        assert await ended() == 0
        await until(ended, lambda gone: gone == 3)
        assert (await g.get("/health")).status_code == 200
    for each in (silent, slow, second):
        each.close()


async def test_connections_at_work_and_between_requests_are_let_be(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.5)
    async with gateway(config(tmp_path), ["said"]) as g:
        idle = raw(g)
        await anyio.to_thread.run_sync(health, idle)
        follower = raw(g)
        head = f"GET /api/events?session=s1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}"
        follower.sendall(head.encode() + b"\r\n\r\n")
        await anyio.to_thread.run_sync(follower.recv, 4096)
        await anyio.sleep(3)
        again = await anyio.to_thread.run_sync(health, idle)
        follower.setblocking(False)
        with pytest.raises(BlockingIOError):
            follower.recv(64)
    assert again.startswith(b"HTTP/1.1 200")
    idle.close()
    follower.close()


async def test_followers_of_sessions_that_never_begin_leave_nothing_behind(tmp_path):
    """SECURITY.md: what a client names and leaves again must not stay in memory."""
    async with gateway(config(tmp_path), []) as g:
        head = f"host: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        followers = [raw(g) for _ in range(20)]
        for n, each in enumerate(followers):
            each.sendall(f"GET /api/events?session=never-{n} HTTP/1.1\r\n{head}".encode())

        async def followed():
            return g.service.bell.followed

        await until(followed, lambda count: count == 20)
        for each in followers:
            each.close()
        await until(followed, lambda count: count == 0)


async def test_readers_that_never_read_do_not_hold_up_the_end(tmp_path, caplog):
    """Their answers end as those of clients that went away, and not with a traceback each."""
    limits = {"drainSeconds": 0}
    body = json.dumps(
        {"model": "main", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    )
    readers = []
    with anyio.fail_after(20), caplog.at_level(logging.DEBUG, "uvicorn.error"):
        settings = config(tmp_path, gateway={"limits": limits})
        async with gateway(settings, ["x" * 8_000_000] * 3) as g:
            for _ in range(3):
                readers.append(raw(g))
                readers[-1].sendall(request(body.encode()))

            async def all_over():
                return g.service.runs.statistics()["completed"]

            await until(all_over, lambda over: over == 3)
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []
    for each in readers:
        each.close()


async def test_a_request_of_two_lengths_is_refused_and_its_connection_closed(tmp_path):
    """A proxy in front may go by the other length, and what it lets through then is smuggled in."""
    smuggled = b"0\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n"
    head = (
        f"POST /api/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n"
        f"content-length: {len(smuggled)}\r\ntransfer-encoding: chunked\r\n\r\n"
    )

    def answers(g):
        with raw(g) as connection:
            connection.settimeout(20)
            connection.sendall(head.encode() + smuggled)
            read = b""
            while piece := connection.recv(4096):
                read += piece
            return read

    async with gateway(config(tmp_path), []) as g:
        read = await anyio.to_thread.run_sync(answers, g)
    assert read.startswith(b"HTTP/1.1 400 ")
    assert read.count(b"HTTP/1.1 ") == 1
    assert b"Content-Length or Transfer-Encoding, not both" in read
