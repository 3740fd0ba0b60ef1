"""Relative paths of a config file start at its folder (docs/configuration.md)."""

import json
from pathlib import Path

import pytest

from toolcell.app.settings import node_path_of, sessions_path_of, workspace_of
from toolcell.config.load import load_config
from toolcell.config.overlay import with_code_mode
from toolcell.config.parse import parse_config
from toolcell.errors import ConfigError

TREE = {
    "sessions": {"path": "data/s.db"},
    "plugins": {"paths": ["plug.py", "../shared", "package.module:attribute", "~/p.py", "/abs.py"]},
    "tools": {"codeMode": {"nodePath": "bin/node"}},
    "agents": {
        "defaults": {"workspace": "work"},
        "entries": {"eye": {"workspace": "."}, "far": {"workspace": "/srv"}},
    },
    "mcp": {
        "servers": {
            "a": {"command": "./serve", "cwd": "run", "args": ["./data"]},
            "b": {"command": "npx"},
            "c": {"command": "~/serve", "cwd": "~"},
            "d": {"url": "http://h/mcp"},
        }
    },
}


@pytest.fixture
def away(tmp_path, monkeypatch):
    """A config file in one folder, and toolcell started in another."""
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "project"


def written(folder, tree):
    file = folder / "toolcell.json"
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(json.dumps(tree))
    return file


def test_every_relative_path_starts_at_the_folder_of_the_file(away):
    config = load_config(written(away, TREE))
    assert sessions_path_of(config) == away / "data/s.db"
    assert node_path_of(config) == away / "bin/node"
    assert workspace_of(config, "main") == away / "work"
    assert workspace_of(config, "eye") == away
    assert workspace_of(config, "far") == Path("/srv")
    assert config.plugins.paths == [
        str(away / "plug.py"),
        str(away / "../shared"),
        "package.module:attribute",
        "~/p.py",
        "/abs.py",
    ]
    servers = config.mcp.servers
    # What arguments mean only the program knows.
    assert servers["a"] == {
        "command": str(away / "serve"),
        "cwd": str(away / "run"),
        "args": ["./data"],
    }
    assert servers["b"] == {"command": "npx"}
    assert servers["c"] == {"command": f"{Path.home()}/serve", "cwd": str(Path.home())}
    assert servers["d"] == {"url": "http://h/mcp"}
    # Options of a command put on top leave them as they are.
    assert node_path_of(with_code_mode(config, executor="node")) == away / "bin/node"


def test_a_file_named_by_a_relative_path_has_an_absolute_folder(away):
    written(away, TREE)
    config = load_config(Path("../project/toolcell.json"))
    assert sessions_path_of(config).is_absolute()
    assert sessions_path_of(config).parent.parent.samefile(away)


def test_a_file_named_by_the_environment_too(away, monkeypatch):
    monkeypatch.setenv("TOOLCELL_CONFIG", str(written(away, TREE)))
    assert workspace_of(load_config(), "main") == away / "work"


def test_a_tree_that_comes_from_no_file_starts_at_the_current_folder(away):
    config = parse_config(TREE)
    assert sessions_path_of(config) == Path("data/s.db")
    assert workspace_of(config, "main") == Path("work")
    assert workspace_of(parse_config({}), "main") == Path.cwd() == away.parent / "elsewhere"


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"sessions": {"path": ""}}, "sessions.path"),
        ({"agents": {"defaults": {"workspace": " "}}}, "agents.defaults.workspace"),
        ({"plugins": {"paths": ["a.py", ""]}}, "plugins.paths[1]"),
        ({"tools": {"codeMode": {"nodePath": ""}}}, "tools.codeMode.nodePath"),
    ],
)
def test_an_empty_path_is_an_error_that_names_it(away, tree, path):
    with pytest.raises(ConfigError, match="must not be empty; leave the key out") as caught:
        load_config(written(away, tree))
    assert path in caught.value.message


@pytest.mark.parametrize("given", [".", "./", "work/..", "..", "../.."])
def test_the_folder_of_the_token_is_no_workspace_by_accident(away, given):
    """`.` of the file in toolcell's own folder would show agents its token and sessions."""
    home = away.parent / "home"
    (home / "work").mkdir(parents=True)
    with pytest.raises(ConfigError, match="where toolcell keeps its token and sessions"):
        load_config(written(home, {"agents": {"defaults": {"workspace": given}}}))
    file = written(home, {"agents": {"entries": {"own": {"workspace": str(home)}}}})
    assert workspace_of(load_config(file), "own") == home
    file = written(home, {"agents": {"defaults": {"workspace": "work"}}})
    assert workspace_of(load_config(file), "main") == home / "work"
