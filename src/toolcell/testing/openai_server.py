"""Owns an OpenAI-compatible endpoint on a real socket that plays a `ScriptedModel`.

For tests of everything that speaks to a model, and for trying `toolcell agent` without one. Needs
`starlette` and `uvicorn`.

Above: tests, QA scenarios. Below: `scripted_model`. Refuses to know: tools.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from toolcell.testing.scripted_model import (
    Answer,
    RawBody,
    RawStream,
    Refusal,
    ScriptedModel,
    chunks,
    completion,
)


class OpenAIServer:
    """The endpoint while it runs.

    Attributes:
        model: The script it plays.
        base_url: What `baseUrl` is set to, `http://127.0.0.1:<port>/v1`.
        raw: Every request body as it came, in order.
        headers: The headers of each request.
        streaming: Set when the last line of a held stream was sent.
        disconnected: Set when a client went away in the middle of a held stream.
    """

    def __init__(self, model: ScriptedModel, port: int) -> None:
        self.model = model
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.raw: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.streaming = anyio.Event()
        self.disconnected = anyio.Event()

    async def chat(self, request: Request) -> Response:
        """Answer `POST /v1/chat/completions`."""
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
                events = self._raw(raw_stream)
            case Answer() as answer if body.get("stream"):
                events = _events(answer, name)
            case Answer() as answer:
                return JSONResponse(completion(answer, name))
        return StreamingResponse(events, media_type="text/event-stream")

    async def models(self, _request: Request) -> Response:
        """Answer `GET /v1/models`."""
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def _raw(self, stream: RawStream) -> AsyncIterator[str]:
        for line in stream.lines:
            yield line if isinstance(line, str) else f"data: {json.dumps(line)}\n\n"
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
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    server = OpenAIServer(model, listener.getsockname()[1])
    routes: list[Any] = [
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
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


async def _events(answer: Answer, model: str) -> AsyncIterator[str]:
    for chunk in chunks(answer, model):
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
