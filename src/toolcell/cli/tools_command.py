"""Owns `toolcell tools`: list, search, describe, and TypeScript declarations.

Above: `cli.main`. Below: `cli.opening`, `catalog`, `codemode.declarations`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import App, Parameter
from cyclopts.validators import Number

from toolcell.base.jsontext import dumps
from toolcell.catalog.entry import Entry
from toolcell.catalog.listing import load_listing
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.cli.console import DONE, FAILED, Progress, print_error, print_json, print_table
from toolcell.cli.console import print_text as print_plain
from toolcell.cli.opening import Opening, opened
from toolcell.cli.options import SHARED, Shared
from toolcell.codemode.declarations.files import api_files
from toolcell.codemode.view import GuestView

app = App(name="tools", help="What is in the catalog, and how to find and call it.")
From = Annotated[
    Path | None, Parameter(name="--catalog", help="A JSONL file instead of the configured tools.")
]
MAX_DESCRIPTION = 100


@dataclass(frozen=True, slots=True)
class Loaded:
    """A catalog to look into."""

    snapshot: CatalogSnapshot


@app.command(name="list")
def list_(*, catalog: From = None, shared: Shared = SHARED) -> int:
    """List every tool in catalog order."""
    loaded = _load(shared, catalog)
    entries = loaded.snapshot.entries
    if shared.json:
        print_json([entry.compact() for entry in entries])
        return DONE
    print_table(("call", "source", "input", "description"), [_row(entry) for entry in entries])
    return DONE


@app.command
def search(
    query: str,
    *,
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = 8,
    explain: Annotated[bool, Parameter(negative="", help="Say why each tool was found.")] = False,
    catalog: From = None,
    shared: Shared = SHARED,
) -> int:
    """Search the catalog as a guest program does."""
    loaded = _load(shared, catalog)
    hits = loaded.snapshot.search(query, limit=limit)
    if shared.json:
        documents = []
        for hit in hits:
            found = {"score": round(hit.score, 4), "exact": hit.exact}
            document = {**hit.entry.compact(), **found}
            if explain:
                why = loaded.snapshot.explain(query, hit.entry)
                document["why"] = {field: list(terms) for field, terms in why.items()}
            documents.append(document)
        print_json(documents)
        return DONE
    columns: tuple[str, ...] = ("score", "call", "source", "description")
    table = [["exact" if hit.exact else f"{hit.score:.2f}", *_short(hit.entry)] for hit in hits]
    if explain:
        columns = (*columns, "why")
        for hit, row in zip(hits, table, strict=True):
            why = loaded.snapshot.explain(query, hit.entry)
            row.append("; ".join(f"{field}: {', '.join(terms)}" for field, terms in why.items()))
    print_table(columns, table)
    if not hits:
        print_error(f"no tool matches {query!r}")
    return DONE


@app.command
def describe(name: str, *, catalog: From = None, shared: Shared = SHARED) -> int:
    """Print one tool with its schemas; NAME is an id, a callable name or the tool's own name."""
    entry = _find(_load(shared, catalog).snapshot, name)
    if entry is None:
        return FAILED
    if shared.json:
        print_json(entry.described())
        return DONE
    for key, value in entry.described().items():
        print_plain(f"{key}: {value if isinstance(value, str) else dumps(value)}")
    return DONE


@app.command
def dts(path: str | None = None, *, catalog: From = None, shared: Shared = SHARED) -> int:
    """Print the TypeScript declarations a guest reads with `API.read`.

    Args:
        path: A path such as `mcp/github.d.ts` or `tools/read.d.ts`; without it the paths are
            listed.
        catalog: A JSONL file instead of the configured tools.
        shared: Options of every command.
    """
    snapshot = _load(shared, catalog).snapshot
    files = api_files(GuestView(entries=snapshot.entries, operations=snapshot.operations))
    if path is None:
        listed = [file.listed() for file in files]
        if shared.json:
            print_json(listed)
        else:
            rows = [[str(row["path"]), str(row["bytes"])] for row in listed]
            print_table(("path", "bytes"), rows)
        return DONE
    for file in files:
        if file.path == path:
            if shared.json:
                print_json({**file.listed(), "content": file.content})
            else:
                print_plain(file.content.rstrip("\n"))
            return DONE
    print_error(f"there is no {path!r}; `toolcell tools dts` lists the paths")
    return FAILED


def _load(shared: Shared, catalog: Path | None) -> Loaded:
    if catalog is not None:
        return Loaded(CatalogSnapshot.build(load_listing(catalog)))
    config = shared.load()
    progress = Progress()

    async def run() -> Loaded:
        async with opened(config, Opening(), progress) as open_:
            run = open_.runtime.run(open_.runtime.scope(channel="cli"))
            return Loaded(run.surface().catalog.snapshot)

    with progress.running("starting"):
        return anyio.run(run)


def _find(snapshot: CatalogSnapshot, name: str) -> Entry | None:
    by_name = [e for e in snapshot.entries if name in {e.name, e.guest_name}]
    entry = snapshot.get(name) or snapshot.by_callable(name)
    if entry is None and len(by_name) == 1:
        entry = by_name[0]
    if entry is not None:
        return entry
    if by_name:
        print_error(f"{name!r} is ambiguous: {', '.join(e.id for e in by_name)}")
        return None
    ids = {each: e.id for e in snapshot.entries for each in (e.id, e.name)}
    spelt = [ids[each] for each in difflib.get_close_matches(name, ids, n=3)]
    found = spelt or [hit.entry.id for hit in snapshot.search(name, limit=3)]
    near = ", ".join(dict.fromkeys(found))
    hint = f"did you mean {near}?" if near else "`toolcell tools list` shows them all"
    print_error(f"unknown tool {name!r}; {hint}")
    return None


def _row(entry: Entry) -> list[str]:
    call, source, description = _short(entry)
    return [call, source, entry.input, description]


def _short(entry: Entry) -> list[str]:
    text = " ".join(entry.description.split())
    shown = text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"
    return [entry.guest_name or entry.id, _source(entry), shown]


def _source(entry: Entry) -> str:
    sourced = entry.sourced
    return f"{sourced.source}:{sourced.owner}"
