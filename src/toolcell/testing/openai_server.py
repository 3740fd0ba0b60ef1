"""Owns a model endpoint on a real socket that plays a `ScriptedModel`, on three wires.

They are OpenAI Chat Completions and Responses, and Anthropic Messages. For tests of everything that
speaks to a model, and for trying `toolcell agent` without one. Needs `starlette` and `uvicorn`.

Above: tests, QA scenarios. Below: `scripted_model`, `responses_wire`, `anthropic_wire`.
Refuses to know: tools.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from toolcell.testing.anthropic_wire import message, message_events
from toolcell.testing.responses_wire import response, response_events
from toolcell.testing.scripted_model import (
    Answer,
    RawBody,
    RawStream,
    Refusal,
    ScriptedModel,
    chunks,
    completion,
)

Whole: TypeAlias = Callable[[Answer, str], dict[str, Any]]
Events: TypeAlias = Callable[[Answer, str], Iterable[Mapping[str, Any] | str]]


class OpenAIServer:
    """The endpoint while it runs.

    Attributes:
        model: The script it plays.
        base_url: What `baseUrl` is set to, `http://127.0.0.1:<port>/v1`.
        root_url: The same for the Anthropic wire, without `/v1`.
        raw: Every request body as it came, in order.
        headers: The headers of each request.
        streaming: Set when the last line of a held stream was sent.
        disconnected: Set when a client went away in the middle of a held stream.
    """

    def __init__(self, model: ScriptedModel, port: int) -> None:
        self.model = model
        self.root_url = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.root_url}/v1"
        self.raw: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.streaming = anyio.Event()
        self.disconnected = anyio.Event()

    async def chat(self, request: Request) -> Response:
        """Answer `POST /v1/chat/completions`."""
        return await self._played(request, completion, _chunks)

    async def responses(self, request: Request) -> Response:
        """Answer `POST /v1/responses`."""
        return await self._played(request, response, response_events)

    async def messages(self, request: Request) -> Response:
        """Answer `POST /v1/messages`."""
        return await self._played(request, message, message_events)

    async def _played(self, request: Request, whole: Whole, events: Events) -> Response:
        data = await request.body()
        self.raw.append(data)
        self.headers.append(dict(request.headers))
        body = json.loads(data)
        name = str(body.get("model", ""))
        match self.model.answer(body):
            case Refusal() as refusal:
                return Response(
                    refusal.body,
                    refusal.status,
                    headers=dict(refusal.headers),
                    media_type="application/json",
                )
            case RawBody() as raw:
                return Response(raw.body, media_type=raw.content_type)
            case RawStream() as raw_stream:
                lines = self._raw(raw_stream)
            case Answer() as answer if body.get("stream"):
                lines = _lines(events(answer, name))
            case Answer() as answer:
                return JSONResponse(whole(answer, name))
        return StreamingResponse(lines, media_type="text/event-stream")

    async def models(self, _request: Request) -> Response:
        """Answer `GET /v1/models`."""
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def _raw(self, stream: RawStream) -> AsyncIterator[str]:
        for line in stream.lines:
            yield line if isinstance(line, str) else _event(line)
        if stream.cut:
            message = "the script breaks the connection here"
            raise ConnectionAbortedError(message)
        if stream.hold:
            self.streaming.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.disconnected.set()


class _Uvicorn(uvicorn.Server):
    """Uvicorn that leaves signals alone and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()
        self.stopping = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        """Wait to be stopped; the original looks only every 100 ms."""
        await self.stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def openai_server(model: ScriptedModel, *, port: int = 0) -> AsyncIterator[OpenAIServer]:
    """Serve `model` on the loopback interface for the body of the `async with` statement."""
    # Without the protocol asyncio leaves Nagle on: 40 ms for each answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    server = OpenAIServer(model, listener.getsockname()[1])
    routes: list[Any] = [
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        Route("/v1/responses", server.responses, methods=["POST"]),
        Route("/v1/messages", server.messages, methods=["POST"]),
        Route("/v1/models", server.models),
    ]
    config = uvicorn.Config(
        Starlette(routes=routes),
        log_level="critical",
        lifespan="off",
        timeout_graceful_shutdown=1,
        ws="none",
    )
    running = _Uvicorn(config)
    failure: Exception | None = None
    with contextlib.closing(listener):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            await running.listening.wait()
            try:
                yield server
            except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
                failure = error
            finally:
                running.stopping.set()
    if failure is not None:
        # As it was: a task group would have wrapped it in an ExceptionGroup.
        raise failure


async def _lines(events: Iterable[Mapping[str, Any] | str]) -> AsyncIterator[str]:
    for event in events:
        yield event if isinstance(event, str) else _event(event)


def _chunks(answer: Answer, model: str) -> Iterator[Mapping[str, Any] | str]:
    yield from chunks(answer, model)
    yield "data: [DONE]\n\n"


def _event(data: Mapping[str, Any]) -> str:
    """Events of the newer wires carry their type as the name of the event, too."""
    name = f"event: {data['type']}\n" if isinstance(data.get("type"), str) else ""
    return f"{name}data: {json.dumps(data)}\n\n"
