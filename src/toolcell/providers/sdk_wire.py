"""Owns sending one body through a vendor's official SDK, whole or as a stream.

The SDKs of OpenAI and Anthropic are made by one generator: the same client methods, the same tree
of exceptions. They send, stream and retry with back-off; the body is ours.

Above: the adapters, each of which hands in its SDK. Below: `outgoing`, `replies`, `wire`, `httpx2`
(which both SDKs send with). Refuses to know: which vendor it is.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from toolcell.base.jsontext import clip_utf8
from toolcell.errors import ProviderError
from toolcell.protocol.messages import ModelReply
from toolcell.providers.body import encode
from toolcell.providers.contract import CheckPayload
from toolcell.providers.outgoing import Refused, inspect_request, inspect_response, sending
from toolcell.providers.overflow import too_long
from toolcell.providers.replies import Assembler
from toolcell.providers.wire import Exchange, WireSettings

RETRYABLE_STATUS = frozenset({408, 409, 429})
"""With every 5xx: what the SDKs themselves try again, with back-off, honouring Retry-After."""

_PASSING = frozenset({"api_error", "overloaded_error", "rate_limit_error", "timeout_error"})
"""Types of errors inside a stream that may pass; one without a type may, too."""

_ERROR_TEXT_BYTES = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One model call in a wire's own terms.

    Attributes:
        path: Behind the base address.
        model: For messages.
        body: Without anything about streaming.
        streaming: What is added to the body of a stream.
        assembler: Makes what reads a stream.
        read: Reads an answer that came in one piece, given the bytes sent.
    """

    path: str
    model: str
    body: Mapping[str, Any]
    streaming: Mapping[str, Any]
    assembler: Callable[[Callable[[str], None] | None], Assembler]
    read: Callable[[object, int], ModelReply]


class SdkWire:
    """One client of one SDK. Safe to use from many tasks."""

    def __init__(
        self,
        sdk: ModuleType,
        make_client: Callable[[Any], Any],
        settings: WireSettings,
        base_url: str,
    ) -> None:
        self._sdk = sdk
        self._settings = settings
        self._base_url = base_url
        self._where = f"models.providers.{settings.provider_id}"
        self._http_error: type[Exception] = import_module("httpx2").HTTPError
        hooks = {"request": [inspect_request], "response": [inspect_response]}
        self._client = make_client(sdk.DefaultAsyncHttpxClient(event_hooks=hooks))

    async def complete(
        self,
        call: Call,
        check_payload: CheckPayload | None,
        on_text: Callable[[str], None] | None,
    ) -> ModelReply:
        """Send the call; stream when somebody listens or the settings say so.

        Raises:
            PayloadViolationError: `check_payload` refused the body; nothing was sent.
            ProviderError: the endpoint refused it, broke off, or made no sense.
        """
        settings = self._settings
        stream = settings.stream if settings.stream is not None else on_text is not None
        exchange = Exchange(provider_id=settings.provider_id, model=call.model)
        with sending(exchange, check_payload, settings.watch):
            async with self._errors(call.model):
                if stream:
                    content = encode({**call.body, **call.streaming})
                    assembler = await self._stream(call, content, exchange, on_text)
                    return assembler.reply(exchange.sent_bytes)
                answer = await self._client.post(
                    call.path, cast_to=object, content=encode(call.body)
                )
                reply = call.read(answer, exchange.sent_bytes)
        if on_text is not None and reply.message.text:
            on_text(reply.message.text)
        return reply

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.close()

    async def _stream(
        self,
        call: Call,
        content: bytes,
        exchange: Exchange,
        on_text: Callable[[str], None] | None,
    ) -> Assembler:
        assembler = call.assembler(on_text)
        stream = await self._client.post(
            call.path,
            cast_to=object,
            content=content,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
        )
        number = 0
        async with stream:
            async for event in stream:
                number += 1
                self._settings.watch.event(exchange, number, event)
                assembler.add(event)
        return assembler

    @asynccontextmanager
    async def _errors(self, model: str) -> AsyncIterator[None]:
        """Turn what the SDK raises into a ProviderError that says what to do."""
        sdk = self._sdk
        try:
            yield
        except Refused as refused:
            raise refused.error from None
        except ProviderError as error:
            # A reader quotes the endpoint, which may quote the key.
            said = self._without_key(error.message)
            if said == error.message:
                raise
            raise ProviderError(
                said, retryable=error.retryable, status=error.status, too_long=error.too_long
            ) from None
        except sdk.APITimeoutError as error:
            message = f"{self._base_url} did not answer in time; try again or raise the timeout"
            raise ProviderError(message, retryable=True) from error
        except sdk.APIConnectionError as error:
            reason = self._clean(str(error.__cause__ or error))
            message = (
                f"cannot reach {self._base_url}: {reason}; is the endpoint running, "
                f"and is {self._where}.baseUrl right?"
            )
            raise ProviderError(message, retryable=True) from error
        except sdk.APIStatusError as error:
            raise self._refusal(error, model) from error
        except sdk.APIError as error:
            raise self._broken(error) from error
        except self._http_error as error:
            message = f"{self._base_url} broke off: {self._clean(str(error))}; try again"
            raise ProviderError(message, retryable=True) from error
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"{self._base_url} sent something that is not JSON: {self._clean(str(error))}"
            raise ProviderError(message) from error

    def _refusal(self, error: Any, model: str) -> ProviderError:
        status = error.status_code
        if status < 400:
            # The answer began well and reports an error in its stream.
            return self._broken(error)
        message = f"{self._base_url} answered {status}: {self._said(error)}"
        remedy = self._remedy(status, model)
        return ProviderError(
            f"{message}; {remedy}" if remedy else message,
            retryable=status in RETRYABLE_STATUS or status >= 500,
            status=status,
            too_long=too_long(status, _inner(error.body), self._said(error)),
        )

    def _broken(self, error: Any) -> ProviderError:
        kind = _inner(error.body).get("type")
        passing = kind is None or kind in _PASSING or not isinstance(kind, str)
        said = self._said(error)
        message = f"{self._base_url} broke off: {said}"
        if too_long(None, _inner(error.body), said):
            return ProviderError(message, too_long=True)
        return ProviderError(f"{message}; try again" if passing else message, retryable=passing)

    def _remedy(self, status: int, model: str) -> str:
        match status:
            case 401 | 403:
                return f"check {self._where}.apiKey"
            case 404:
                return f"check the model name {model!r} and {self._where}.baseUrl"
            case 413:
                return "the conversation is too long for this endpoint"
            case 429 | 529:
                return "wait, or lower the rate of requests"
            case _:
                return ""

    def _said(self, error: Any) -> str:
        body = error.body
        if isinstance(body, Mapping) and isinstance(body.get("error"), str):
            body = body["error"]
        # A page of a proxy says nothing to anybody.
        plain = isinstance(body, str) and not body.lstrip().startswith("<")
        said = body if plain else _inner(body).get("message")
        return self._clean(said if isinstance(said, str) and said else str(error.message))

    def _clean(self, text: str) -> str:
        """Bound an endpoint's words, on one line, without the key it may have echoed."""
        return clip_utf8(" ".join(self._without_key(text).split()), _ERROR_TEXT_BYTES)

    def _without_key(self, text: str) -> str:
        key = self._settings.api_key
        return text.replace(key, "***") if key else text


def _inner(body: object) -> Mapping[str, Any]:
    """Return the error object of an error's body; vendors wrap it once or not at all."""
    if not isinstance(body, Mapping):
        return {}
    error = body.get("error")
    return error if isinstance(error, Mapping) else body


def load_sdk(name: str, vendor: str) -> ModuleType:
    """Import an SDK: each is an optional extra and half a second of import.

    Raises:
        ProviderError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        message = (
            f'the {vendor} wire needs the `{name}` package; run: pip install "toolcell[{name}]"'
        )
        raise ProviderError(message) from error
