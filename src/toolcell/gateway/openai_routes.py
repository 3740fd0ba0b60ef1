"""Owns the OpenAI-compatible endpoints: chat completions, responses, models.

Above: `app`. Below: `answering`, the requests and replies of each wire, `streaming`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import Response

from toolcell.base.identifiers import fresh
from toolcell.calls.redaction import Redactor
from toolcell.gateway import chat_reply, responses_reply
from toolcell.gateway.agents import PREFIX, agent_of, model_cards
from toolcell.gateway.answering import Following, opened
from toolcell.gateway.asking import Ask
from toolcell.gateway.bodies import json_answer, read_model, session_id
from toolcell.gateway.chat_request import ChatRequest, chat_ask
from toolcell.gateway.faults import ApiError, api_error
from toolcell.gateway.live import ClientCalls, Ended, LiveRun
from toolcell.gateway.responses_request import ResponsesRequest, responses_ask
from toolcell.gateway.service import Service
from toolcell.gateway.streaming import EventStream, while_connected

SESSION_HEADER: Final = "x-toolcell-session"
RUN_HEADER: Final = "x-toolcell-run"
APP_HEADER: Final = "x-toolcell-app"


class Writer(Protocol):
    """Turns what a run says into the frames of one wire."""

    def opening(self) -> Iterator[bytes]:
        """Yield what comes first."""
        ...

    def text(self, piece: str) -> Iterator[bytes]:
        """Yield the frames of a piece of text."""
        ...

    def ending(self, item: ClientCalls | Ended, live: LiveRun) -> Iterator[bytes]:
        """Yield the last frames of this response."""
        ...

    def failing(self, error: ApiError) -> Iterator[bytes]:
        """Yield the last frames of a run that failed."""
        ...


class OpenAIRoutes:
    """The endpoints over one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limit = service.config.gateway.limits.max_request_bytes

    async def chat_completions(self, request: Request) -> Response:
        """Answer `POST /v1/chat/completions`."""
        body = await read_model(request, ChatRequest, limit=self._limit)
        ask = self._named(request, chat_ask(body))
        live = await opened(self._service, ask)
        heading = chat_reply.Heading(
            id=_id("chatcmpl-"), created=self._now(), model=self._model(ask)
        )
        if ask.stream:
            writer = ChatWriter(heading, usage=body.wants_usage)
            return await self._streamed(request, live, writer)
        with live.followed():
            following = self._following(live)
            answer = await while_connected(request.receive, following.whole, on_gone=following.gone)
        document = chat_reply.completion(
            heading,
            text=answer.text,
            calls=answer.calls,
            finish=answer.finish,
            usage=answer.usage,
        )
        return json_answer(document, headers=_told(live))

    async def responses(self, request: Request) -> Response:
        """Answer `POST /v1/responses`."""
        body = await read_model(request, ResponsesRequest, limit=self._limit)
        ask = self._named(request, responses_ask(body, self._service.responses))
        live = await opened(self._service, ask)
        head = responses_reply.Head(
            id=_id("resp_"),
            created=self._now(),
            model=self._model(ask),
            instructions=ask.instructions,
            previous=body.previous_response_id,
            session=live.scope.session_id,
            tools=tuple(tool.model_dump(exclude_none=True) for tool in body.tools or ()),
            metadata=body.metadata or {},
        )
        self._service.responses.add(head.id, live.scope.session_id)
        if ask.stream:
            return await self._streamed(request, live, ResponseWriter(head))
        with live.followed():
            following = self._following(live)
            answer = await while_connected(request.receive, following.whole, on_gone=following.gone)
        document = responses_reply.response(
            head,
            status="completed",
            output=responses_reply.output_items(answer.text, answer.calls),
            finish=answer.finish,
            usage=answer.usage,
        )
        return json_answer(document, headers=_told(live))

    async def models(self, _request: Request) -> Response:
        """Answer `GET /v1/models`: the agents."""
        cards = model_cards(self._service.config, self._service.started_at)
        return json_answer({"object": "list", "data": cards})

    async def model(self, request: Request) -> Response:
        """Answer `GET /v1/models/{model}`."""
        name = agent_of(self._service.config, request.path_params["model"])
        cards = model_cards(self._service.config, self._service.started_at)
        return json_answer(next(card for card in cards if card["id"] == f"{PREFIX}{name}"))

    async def _streamed(self, request: Request, live: LiveRun, writer: Writer) -> Response:
        with live.followed():
            following = self._following(live)
            await while_connected(request.receive, following.begin, on_gone=following.gone)
        redactor = self._service.redactor

        async def events() -> AsyncIterator[bytes]:
            with live.followed():
                async for frame in _frames(following, writer, redactor):
                    yield frame

        return EventStream(events, on_gone=following.gone, headers=_told(live))

    def _named(self, request: Request, ask: Ask) -> Ask:
        """Take what the headers say: they win over the body's metadata."""
        headers = request.headers
        named = headers.get(SESSION_HEADER) or ask.session
        session = session_id(named, param=SESSION_HEADER if ask.session is None else "metadata")
        return replace(ask, session=session, app=headers.get(APP_HEADER) or ask.app)

    def _following(self, live: LiveRun) -> Following:
        return Following(live, self._service.redactor)

    def _model(self, ask: Ask) -> str:
        return ask.model or f"{PREFIX}{agent_of(self._service.config, None)}"

    def _now(self) -> int:
        return int(self._service.runtime.host.clock.wall())


class ChatWriter:
    """Writes the chunks of a Chat Completions stream."""

    def __init__(self, heading: chat_reply.Heading, *, usage: bool) -> None:
        self._heading = heading
        self._usage = usage

    def opening(self) -> Iterator[bytes]:
        """Yield what comes first."""
        yield chat_reply.first_chunk(self._heading)

    def text(self, piece: str) -> Iterator[bytes]:
        """Yield the chunk of a piece of text."""
        yield chat_reply.text_chunk(self._heading, piece)

    def ending(self, item: ClientCalls | Ended, live: LiveRun) -> Iterator[bytes]:
        """Yield the last chunks of this response."""
        usage = live.take_usage()
        yield from chat_reply.last_chunks(
            self._heading,
            calls=item.calls if isinstance(item, ClientCalls) else (),
            finish=item.finish if isinstance(item, Ended) else None,
            usage=usage if self._usage else None,
        )

    def failing(self, error: ApiError) -> Iterator[bytes]:
        """Yield the error; official clients raise it."""
        yield chat_reply.data(error.body())
        yield chat_reply.DONE


class ResponseWriter:
    """Writes the events of a Responses stream."""

    def __init__(self, head: responses_reply.Head) -> None:
        self._events = responses_reply.ResponseEvents(head)

    def opening(self) -> Iterator[bytes]:
        """Yield what comes first."""
        return self._events.opening()

    def text(self, piece: str) -> Iterator[bytes]:
        """Yield the events of a piece of text."""
        return self._events.text(piece)

    def ending(self, item: ClientCalls | Ended, live: LiveRun) -> Iterator[bytes]:
        """Yield the last events of this response."""
        return self._events.closing(
            calls=item.calls if isinstance(item, ClientCalls) else (),
            finish=item.finish if isinstance(item, Ended) else None,
            usage=live.take_usage(),
        )

    def failing(self, error: ApiError) -> Iterator[bytes]:
        """Yield the end of a run that failed."""
        return self._events.failing(error)


async def _frames(following: Following, writer: Writer, redactor: Redactor) -> AsyncIterator[bytes]:
    for frame in writer.opening():
        yield frame
    while True:
        item = await following.next()
        if isinstance(item, str):
            if item:
                for frame in writer.text(item):
                    yield frame
            continue
        if rest := following.rest():
            for frame in writer.text(rest):
                yield frame
        for frame in _last(following, writer, item, redactor):
            yield frame
        return


def _last(
    following: Following, writer: Writer, item: ClientCalls | Ended, redactor: Redactor
) -> Iterator[bytes]:
    try:
        if isinstance(item, Ended):
            following.check(item)
    except Exception as error:  # noqa: BLE001 - the border of the gateway: told in the stream
        told = api_error(error)
        told.message = redactor.text(told.message)
        yield from writer.failing(told)
    else:
        yield from writer.ending(item, following.live)


def _told(live: LiveRun) -> dict[str, str]:
    return {SESSION_HEADER: live.scope.session_id, RUN_HEADER: live.run_id}


def _id(prefix: str) -> str:
    return prefix + fresh("x").removeprefix("x_").replace("-", "")
