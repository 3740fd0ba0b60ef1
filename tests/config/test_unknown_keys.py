"""Rule 1.2: an unknown key is an error that names its path and what was probably meant."""

import re
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel

from toolcell.app.settings import mcp_servers_of
from toolcell.config.parse import parse_config
from toolcell.config.tree import Config
from toolcell.errors import ConfigError
from toolcell.sources.mcp.oauth_settings import OAuthSettings
from toolcell.sources.mcp.settings import McpServerSettings

# Names that people choose may be spelt like keys, or like pydantic's names of types.
CHOSEN = ("main", "tools", "models", "int", "str", "bool", "none", "function-x", "a.b", "p/m")


def told(tree):
    with pytest.raises(ConfigError) as caught:
        mcp_servers_of(parse_config(tree))
    return caught.value.message


def nodes(kind, wrap, chosen):
    """Yield every node's keys and how to put a value there, open mappings under a chosen name."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {field.alias: field for field in kind.model_fields.values()}
        yield list(fields), wrap
        for key, field in fields.items():
            yield from nodes(field.annotation, lambda inner, key=key: wrap({key: inner}), chosen)
    elif get_origin(kind) is dict:
        yield from nodes(get_args(kind)[1], lambda inner: wrap({chosen: inner}), chosen)
    elif get_origin(kind) is list:
        yield from nodes(get_args(kind)[0], lambda inner: wrap([inner]), chosen)
    else:
        for member in get_args(kind):
            yield from nodes(member, wrap, chosen)


def slips(key):
    """What people write: a letter left out, other capitals, words joined in another way."""
    words = re.sub(r"([A-Z])", r"-\1", key).lower()
    return {key[:1] + key[2:], key.upper(), words, words.replace("-", "_") + "s"} - {key}


@pytest.mark.parametrize("chosen", CHOSEN)
def test_a_slip_at_any_depth_is_answered_with_the_key(chosen):
    found = 0
    for keys, wrap in nodes(Config, lambda inner: inner, chosen):
        for key in keys:
            if len(key) < 4:
                continue
            for slip in slips(key) - set(keys):
                message = told(wrap({slip: {}}))
                if f"{slip}: unknown key" in message:
                    assert re.search(rf"{slip}: unknown key; did you mean '{key}'", message), (
                        message
                    )
                    found += 1
                else:  # pydantic takes a field's Python name as well
                    assert slip.replace("_", "") == key.lower(), message
    assert found > 300


@pytest.mark.parametrize("chosen", CHOSEN)
def test_the_path_of_a_slip_keeps_the_name_that_somebody_chose(chosen):
    shown = f'["{chosen}"]' if set(chosen) & {".", "/"} else f".{chosen}"
    message = told({"agents": {"entries": {chosen: {"tools": {"codeMode": {"enabld": True}}}}}})
    assert message == (
        f"agents.entries{shown}.tools.codeMode.enabld: unknown key; did you mean 'enabled'?"
    )
    model = {"id": "m", "cost": {"input": 1, "output": 1, "cachRead": 1}}
    message = told({"models": {"providers": {chosen: {"models": [model]}}}})
    assert message.startswith(f"models.providers{shown}.models[0].cost.cachRead: ")
    assert message.endswith("did you mean 'cacheRead'?")


def camel(name):
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def test_a_slip_in_the_settings_of_an_mcp_server_is_answered_too():
    """Their place in the tree is open: another room reads it."""
    for field in McpServerSettings.__dataclass_fields__:
        for slip in slips(camel(field)) - {field}:
            if len(field) > 3:
                message = told({"mcp": {"servers": {"x": {slip: 1}}}})
                assert message == (
                    f"mcp.servers.x.{slip}: unknown key; did you mean {camel(field)!r}?"
                )
    for field in OAuthSettings.__dataclass_fields__:
        for slip in slips(camel(field)) - {field}:
            message = told({"mcp": {"servers": {"x": {"url": "http://x", "oauth": {slip: 1}}}}})
            assert message.startswith(f"mcp.servers.x.oauth.{slip}: unknown key; did you mean ")


def test_a_key_that_resembles_none_is_answered_with_all_there_are():
    assert told({"zzz": 1}) == (
        "zzz: unknown key; known keys: agents, channels, gateway, mcp, models, plugins, sessions, "
        "tools"
    )
    assert told({"mcpServers": {}}) == "mcpServers: unknown key; did you mean 'mcp.servers'?"
    assert "known keys: args, callTimeoutSeconds" in told({"mcp": {"servers": {"x": {"q": 1}}}})


def test_values_of_unions_are_told_without_the_names_of_types():
    for value in (3, "yes", []):
        message = told(
            {"agents": {"entries": {"int": {"tools": {"codeMode": {"enabled": value}}}}}}
        )
        assert message.startswith("agents.entries.int.tools.codeMode.enabled: must be")
