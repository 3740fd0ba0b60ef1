"""What the package imports is what it declares: a user has no development extras."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "toolcell"
FOREIGN = SOURCE / "adapters"
"""Adapters import the framework that their user has already."""


def imported():
    found = {}
    for file in SOURCE.rglob("*.py"):
        if FOREIGN in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                found.setdefault(name.split(".")[0], file.relative_to(ROOT))
    return {n: f for n, f in found.items() if n not in sys.stdlib_module_names | {"toolcell"}}


def plain(name):
    return re.split(r"[<>=~!\[; ]", name)[0].lower().replace("_", "-")


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    offered = [each for name, every in extras.items() if name != "dev" for each in every]
    return {plain(each) for each in [*project["dependencies"], *offered]}


def test_every_import_is_declared_by_the_package_itself():
    known, ours = packages_distributions(), declared()
    missing = {
        name: str(file)
        for name, file in imported().items()
        if not {plain(each) for each in known.get(name, [name])} & ours
    }
    assert missing == {}
