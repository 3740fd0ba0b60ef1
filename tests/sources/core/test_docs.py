"""docs/core-tools.md names every core tool, and its config examples are accepted."""

from __future__ import annotations

import re
from pathlib import Path

import json5
import pytest

from tests.sources.core.test_index import OURS
from toolcell.app.core_setup import online_of
from toolcell.config.parse import parse_config
from toolcell.errors import ConfigError

PAGE = (Path(__file__).parents[3] / "docs" / "core-tools.md").read_text(encoding="utf-8")


def test_every_core_tool_is_on_the_page():
    """rule 7.4."""
    named = set(re.findall(r"`(\w+)`", PAGE)) | set(re.findall(r"`(\w+)\(", PAGE))
    assert named >= OURS


@pytest.mark.parametrize("block", re.findall(r"```json5\n(.*?)```", PAGE, re.DOTALL))
def test_the_config_examples_are_accepted(block, monkeypatch):
    monkeypatch.setenv("BRAVE_API_KEY", "a-key-of-the-service")
    monkeypatch.setenv("OPS_SECRET", "a secret of the channel")
    online_of(parse_config(json5.loads(block)))


def test_a_secret_too_short_to_sign_with_is_refused(monkeypatch):
    monkeypatch.setenv("OPS_SECRET", "short")
    config = {"channels": {"ops": {"url": "https://x/", "secret": "${OPS_SECRET}"}}}
    with pytest.raises(ConfigError, match=r"channels\.ops\.secret: must have at least 16"):
        online_of(parse_config(config))
