"""Owns the OpenAI Chat Completions wire, for OpenAI and every endpoint that speaks it.

The official SDK sends, streams and retries; the body is ours, and `check_payload` sees it as it
leaves: a hook on the HTTP client reads it from the request that is about to be written (rule 2.6).

Above: the registry. Below: `openai_body`, `openai_replies`, the `openai` SDK (an extra, imported
on first use: it takes half a second). Refuses to know: tools, code mode.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from toolcell.base.jsontext import clip_utf8
from toolcell.errors import ProviderError
from toolcell.protocol.messages import ModelReply, ModelRequest
from toolcell.providers.contract import CheckPayload
from toolcell.providers.openai_body import chat_body, encode
from toolcell.providers.openai_replies import ReplyAssembler, read_completion

OPENAI_URL = "https://api.openai.com/v1"
RETRYABLE_STATUS = frozenset({408, 409, 429})
"""With every 5xx: what the SDK itself tries again, with back-off, and honours Retry-After for."""

_ERROR_TEXT_BYTES = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIChatSettings:
    """One endpoint.

    Attributes:
        provider_id: Its name in config, for messages.
        base_url: Its address up to, and without, `/chat/completions`; None is OpenAI's own.
        api_key: Its key; local endpoints may need none.
        stream: True always asks for a stream; None only when somebody listens.
        max_retries: Further attempts after a connection error, 408, 409, 429 or 5xx.
        timeout_seconds: The longest silence on the wire that is waited through.
        headers: Further request headers.
    """

    provider_id: str = "openai"
    base_url: str | None = None
    api_key: str | None = None
    stream: bool | None = None
    max_retries: int = 2
    timeout_seconds: float = 600.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Sending:
    check: CheckPayload | None
    sent_bytes: int = 0


_sending: ContextVar[_Sending | None] = ContextVar("toolcell_openai_sending", default=None)


class OpenAIChatProvider:
    """A `Provider` over Chat Completions. One per endpoint; safe to use from many tasks."""

    def __init__(self, settings: OpenAIChatSettings) -> None:
        """Make the client; nothing is sent.

        Raises:
            ProviderError: the SDK is not installed, or OpenAI itself is meant and no key is set.
        """
        self._settings = settings
        self._sdk = _load_sdk()
        where = f"models.providers.{settings.provider_id}"
        if settings.api_key is None and settings.base_url is None:
            message = f"no API key for OpenAI; set {where}.apiKey, or {where}.baseUrl"
            raise ProviderError(message)
        self._where = where
        self._base_url = settings.base_url or OPENAI_URL
        http_client = self._sdk.DefaultAsyncHttpxClient(event_hooks={"request": [_inspect]})
        self._client = self._sdk.AsyncOpenAI(
            # The SDK insists on a key; an endpoint that was given none does not read it.
            api_key=settings.api_key or "none",
            base_url=self._base_url,
            max_retries=settings.max_retries,
            timeout=settings.timeout_seconds,
            default_headers=dict(settings.headers),
            http_client=http_client,
        )

    async def complete(
        self,
        request: ModelRequest,
        *,
        check_payload: CheckPayload | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ModelReply:
        """Send the request; stream when somebody listens or the settings say so.

        Raises:
            PayloadViolationError: `check_payload` refused the body; nothing was sent.
            ProviderError: the endpoint refused it, broke off, or made no sense.
        """
        body = chat_body(request)
        stream = self._settings.stream if self._settings.stream is not None else on_text is not None
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        sending = _Sending(check_payload)
        token = _sending.set(sending)
        try:
            async with self._errors(request.model):
                if stream:
                    assembler = await self._stream(encode(body), on_text)
                    return assembler.reply(sending.sent_bytes)
                answer = await self._client.post(
                    "/chat/completions", cast_to=object, content=encode(body)
                )
                reply = read_completion(answer, sending.sent_bytes)
        finally:
            _sending.reset(token)
        if on_text is not None and reply.message.text:
            on_text(reply.message.text)
        return reply

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.close()

    async def _stream(
        self, content: bytes, on_text: Callable[[str], None] | None
    ) -> ReplyAssembler:
        assembler = ReplyAssembler(on_text)
        stream = await self._client.post(
            "/chat/completions",
            cast_to=object,
            content=content,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
        )
        async with stream:
            async for chunk in stream:
                assembler.add(chunk)
        return assembler

    @asynccontextmanager
    async def _errors(self, model: str) -> AsyncIterator[None]:
        """Turn what the SDK raises into a ProviderError that says what to do."""
        sdk = self._sdk
        try:
            yield
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
            status = error.status_code
            message = f"{self._base_url} answered {status}: {self._said(error)}"
            remedy = self._remedy(status, model)
            raise ProviderError(
                f"{message}; {remedy}" if remedy else message,
                retryable=status in RETRYABLE_STATUS or status >= 500,
                status=status,
            ) from error
        except sdk.APIError as error:
            message = f"{self._base_url} broke off: {self._said(error)}; try again"
            raise ProviderError(message, retryable=True) from error
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"{self._base_url} sent something that is not JSON: {self._clean(str(error))}"
            raise ProviderError(message) from error

    def _remedy(self, status: int, model: str) -> str:
        match status:
            case 401 | 403:
                return f"check {self._where}.apiKey"
            case 404:
                return f"check the model name {model!r} and {self._where}.baseUrl"
            case 413:
                return "the conversation is too long for this endpoint"
            case 429:
                return "wait, or lower the rate of requests"
            case _:
                return ""

    def _said(self, error: Any) -> str:
        body = error.body
        said = body.get("message") if isinstance(body, Mapping) else None
        return self._clean(said if isinstance(said, str) and said else str(error.message))

    def _clean(self, text: str) -> str:
        """Bound an endpoint's words, on one line, without the key it may have echoed."""
        if self._settings.api_key:
            text = text.replace(self._settings.api_key, "***")
        return clip_utf8(" ".join(text.split()), _ERROR_TEXT_BYTES)


async def _inspect(request: Any) -> None:
    """Read the body from the request as it leaves, on every attempt."""
    sending = _sending.get()
    if sending is None:
        return
    sending.sent_bytes = len(request.content)
    if sending.check is not None:
        sending.check(json.loads(request.content))


def _load_sdk() -> ModuleType:
    try:
        import openai  # noqa: PLC0415 - an optional extra, and half a second of import
    except ImportError as error:
        message = 'the OpenAI wire needs the `openai` package; run: pip install "toolcell[openai]"'
        raise ProviderError(message) from error
    return openai
