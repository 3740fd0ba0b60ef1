"""The config file: where it is, how it is read, and edits that keep all the rest."""

import pytest

from toolcell.config.edit import set_value, split_path, unset_value, write_atomically
from toolcell.config.load import load_config, parse_json5
from toolcell.config.migrate import migrate
from toolcell.errors import ConfigError

FILE = """// top
{
  // about tools
  tools: { codeMode: true, /* inside */ }, // tail
  'mcp': {servers: {}} // last
}
"""


def edited(text, path, value):
    return set_value(text, split_path(path), value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("tools.codeMode", {"enabled": True, "timeoutMs": 5}),
        ("tools.toolSearch", True),
        ("mcp.servers.fs", {"command": "x", "args": ["a"]}),
        ("models.providers.x.baseUrl", "http://localhost"),
        ('agents.defaults.models["a/b.c"].codeMode', True),
    ],
)
def test_setting_a_value_keeps_every_comment(path, value):
    text = edited(FILE, path, value)
    for comment in ("// top", "// about tools", "/* inside */", "// tail", "// last"):
        assert comment in text
    data = parse_json5(text, origin="test")
    for key in split_path(path):
        data = data[key]
    assert data == value


def test_unsetting_a_value_leaves_a_valid_file():
    for path in ("tools.codeMode", "tools", "mcp", "mcp.servers"):
        text = unset_value(FILE, split_path(path))
        data = parse_json5(text, origin="test")
        *way, last = split_path(path)
        for key in way:
            data = data[key]
        assert last not in data
        assert "// top" in text
    assert parse_json5(unset_value("{a:1, b:2}", ("b",)), origin="t") == {"a": 1}
    assert parse_json5(unset_value("{a:1, b:2}", ("a",)), origin="t") == {"b": 2}


def test_edits_that_cannot_be_made_name_the_path():
    with pytest.raises(ConfigError, match="tools.codeMode: is not an object"):
        edited(FILE, "tools.codeMode.enabled", True)
    with pytest.raises(ConfigError, match="tools.swarm: is not set"):
        unset_value(FILE, ("tools", "swarm"))
    for path in ("", "a..b", "a[", '["a"'):
        with pytest.raises(ConfigError, match="is not a config path"):
            split_path(path)


def test_a_file_may_start_empty():
    assert parse_json5(edited("", "a.b", 1), origin="t") == {"a": {"b": 1}}


def test_a_named_file_must_exist_and_the_default_one_need_not(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)
    assert load_config().tools.code_mode is None
    with pytest.raises(ConfigError, match="does not exist"):
        load_config(tmp_path / "absent.json")
    monkeypatch.setenv("TOOLCELL_CONFIG", str(tmp_path / "gone.json"))
    with pytest.raises(ConfigError, match="does not exist"):
        load_config()


def test_a_broken_file_is_told_with_its_path(tmp_path):
    file = tmp_path / "toolcell.json"
    for text, words in (("{tools:", "not valid JSON5"), ("[1]", "one object"), ("{a:1}", "a: ")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=words) as caught:
            load_config(file)
        assert str(file) in caught.value.message
    file.write_bytes(b"\xff\xfe{")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(file)


def test_an_atomic_write_keeps_permissions(tmp_path):
    file = tmp_path / "deep" / "toolcell.json"
    write_atomically(file, "{}")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    write_atomically(file, "{a:1}")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("{a:1}", 0o640)
    assert [path.name for path in file.parent.iterdir()] == ["toolcell.json"]


def test_the_legacy_runtime_is_migrated_and_nothing_else_changes():
    """rule 1.3, BEHAVIOURS 22."""
    text = '{tools:{codeMode:{runtime:"quickjs-wasi", languages:["typescript"] /* keep */}}}'
    result = migrate(text)
    assert parse_json5(result.text, origin="t") == {
        "tools": {"codeMode": {"languages": ["typescript"], "executor": "quickjs"}}
    }
    assert "/* keep */" in result.text
    assert len(result.changes) == 1
    assert 'guestApi: "tools"' in result.changes[0]
    assert migrate(result.text).changes == ()
    explicit = migrate('{tools:{codeMode:{runtime:"quickjs-wasi",executor:"node"}}}')
    assert parse_json5(explicit.text, origin="t") == {"tools": {"codeMode": {"executor": "node"}}}
    agent = migrate('{agents:{entries:{a:{tools:{codeMode:{runtime:"quickjs-wasi"}}}}}}')
    assert "executor" in agent.text
    assert "agents.entries.a" in agent.changes[0]
