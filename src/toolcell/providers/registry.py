"""Owns the way from `provider/model` to a provider: one client per endpoint, made on first use.

Above: `app`, the CLI. Below: the adapters, which are imported only when their wire is used.
Refuses to know: the config tree; it is handed plain settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolcell.errors import ConfigError
from toolcell.providers.contract import Provider
from toolcell.providers.prices import Price, Priced
from toolcell.providers.wire import Unwatched, WireSettings, WireWatch

Api = Literal["openai-chat", "openai-responses", "anthropic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`models.providers.<id>`: which wire, where, with which key.

    `problem` says why it cannot be used, such as a variable that is not set; `prices` what its
    models cost, by their name.
    """

    api: Api = "openai-chat"
    base_url: str | None = None
    api_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model by the name config uses: `provider/model`; the model's own name may hold slashes."""

    provider_id: str
    model: str

    @classmethod
    def parse(cls, text: str) -> ModelRef:
        """Split `provider/model` at the first slash.

        Raises:
            ConfigError: one half is missing.
        """
        provider_id, slash, model = text.strip().partition("/")
        if not (provider_id and slash and model):
            message = f"{text!r} is no model; write it as provider/model, such as openai/gpt-5"
            raise ConfigError(message)
        return cls(provider_id, model)

    def __str__(self) -> str:
        """Return `provider/model`."""
        return f"{self.provider_id}/{self.model}"


class ProviderRegistry:
    """Opens providers by id and closes them all.

    Args:
        endpoints: Endpoints by provider id.
        watch: Sees the traffic of those that speak HTTP.
    """

    def __init__(
        self, endpoints: Mapping[str, Endpoint], *, watch: WireWatch | None = None
    ) -> None:
        self._endpoints = dict(endpoints)
        self._watch = watch or Unwatched()
        self._open: dict[str, Provider] = {}

    def resolve(self, name: str) -> tuple[Provider, ModelRef]:
        """Return the provider of `provider/model`, and the name in parts.

        Raises:
            ConfigError: the name is malformed or its provider is not configured.
            ProviderError: the provider's SDK is not installed, or it has no key.
        """
        ref = ModelRef.parse(name)
        provider = self._open.get(ref.provider_id)
        if provider is None:
            provider = self._make(ref.provider_id)
            self._open[ref.provider_id] = provider
        endpoint = self._endpoints.get(ref.provider_id)
        if endpoint is not None and ref.model in endpoint.prices:
            return Priced(provider, endpoint.prices), ref
        return provider, ref

    def check(self, name: str) -> None:
        """Look whether `provider/model` could be resolved, without opening anything.

        Raises:
            ConfigError: the name is malformed or its provider is not configured.
        """
        provider_id = ModelRef.parse(name).provider_id
        if provider_id not in self._open:
            self._endpoint(provider_id)

    def add(self, provider_id: str, provider: Provider) -> None:
        """Use `provider` for `provider_id`: a scripted one, or one of the caller's own."""
        self._open[provider_id] = provider

    async def aclose(self) -> None:
        """Close every provider that was opened."""
        while self._open:
            _, provider = self._open.popitem()
            await provider.aclose()

    def _endpoint(self, provider_id: str) -> Endpoint:
        endpoint = self._endpoints.get(provider_id)
        if endpoint is None:
            known = ", ".join(sorted({*self._endpoints, *self._open})) or "none"
            message = f"unknown provider (configured: {known}); add it with api, baseUrl and apiKey"
            raise ConfigError(message, path=f"models.providers.{provider_id}")
        return endpoint

    def _make(self, provider_id: str) -> Provider:
        endpoint = self._endpoint(provider_id)
        if endpoint.problem:
            raise ConfigError(endpoint.problem)
        settings = WireSettings(
            provider_id=provider_id,
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            headers=endpoint.headers,
            watch=self._watch,
        )
        return _open(endpoint.api, settings)


def _open(api: Api, settings: WireSettings) -> Provider:
    """Import a wire when it is used, and open it."""
    match api:
        case "openai-chat":
            from toolcell.providers.openai_chat import OpenAIChatProvider  # noqa: PLC0415 - see above

            return OpenAIChatProvider(settings)
        case "openai-responses":
            from toolcell.providers.openai_responses import (  # noqa: PLC0415 - see above
                OpenAIResponsesProvider,
            )

            return OpenAIResponsesProvider(settings)
        case "anthropic":
            from toolcell.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - see above

            return AnthropicProvider(settings)
