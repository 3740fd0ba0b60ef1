"""How well and how fast tool search finds the right tool, over public retrieval sets.

Run: python bench/retrieval.py --data DIR [--split NAME] [--peers] [--speed]

DIR has `<set>/tools.jsonl` and `<set>/queries.NAME.jsonl` (default `dev`). Prints one JSON line for
each set and the mean over the English sets; a set of several languages is measured by language.
`--peers` also runs FastMCP's BM25 transform, bm25s, rank_bm25, tantivy (installed into an
environment of their own under the user's cache folder) and SQLite FTS5. `--speed` measures index
build and query time over catalogs of 1,000 and 10,000 tools mixed from all sets.
"""

import argparse
import json
import random
import subprocess
import time
import venv
from pathlib import Path

from retrieval_sets import rows, run, sets

from toolcell.catalog.entry import Entry
from toolcell.catalog.search.searcher import Searcher
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool

PEERS = Path(__file__).parent / "peers" / "search_engines.py"
CACHE = Path.home() / ".cache" / "toolcell" / "bench" / "search"
PACKAGES = ["fastmcp", "bm25s", "PyStemmer", "rank_bm25", "tantivy"]


async def never(_arguments, _context):
    raise NotImplementedError


def entry(row):
    """Return the entry of a tool row. Sets may hold two tools of one name, so ids are kept."""
    server = row.get("server") or "core"
    tool = Tool(
        name=row["name"],
        description=row.get("description") or "",
        parameters=row.get("parameters") or row.get("inputSchema") or {},
        execute=never,
    )
    origin = McpOrigin(server=server, tool=tool.name)
    sourced = SourcedTool(tool=tool, source="mcp", owner=server, group=Group.MCP, mcp=origin)
    object.__setattr__(sourced, "id", row["id"])
    return Entry(
        sourced=sourced,
        description=tool.description,
        callable_name=None,
        mcp_path=None,
        api_path=None,
    )


def build(tools):
    searcher = Searcher([entry(row) for row in tools])
    searcher.search("warm up", limit=1)
    return lambda text, k: [hit.entry.id for hit in searcher.search(text, limit=k)]


def peers(data, split):
    python = CACHE / "bin" / "python"
    if not (CACHE / "ready").exists():
        venv.create(CACHE, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PACKAGES], check=True)
        (CACHE / "ready").touch()
    subprocess.run([python, PEERS, "--data", data, "--split", split], check=True)


def speed(data, split):
    pool = {}
    queries = []
    chosen = random.Random(5)
    for name, tools, some in sets(data, split):
        pool |= {f"{name}/{row['id']}": row | {"id": f"{name}/{row['id']}"} for row in tools}
        queries += [query["query"] for query in chosen.sample(some, min(40, len(some)))]
    catalog = Path(data).parent / "mcp_catalog.jsonl"
    for row in rows(catalog) if catalog.exists() else []:
        pool[f"mcp/{row['id']}"] = row | {"id": f"mcp/{row['id']}"}
    shuffled = list(pool.values())
    chosen.shuffle(shuffled)
    build(shuffled[:2])("word lists are read once", 1)
    for count in (1_000, 10_000):
        if count > len(shuffled):
            continue
        start = time.thread_time()
        search = build(shuffled[:count])
        built = time.thread_time() - start
        spent = []
        for query in queries:
            start = time.thread_time()
            search(query, 8)
            spent.append((time.thread_time() - start) * 1e3)
        spent.sort()
        line = {"engine": "toolcell", "set": "speed", "tools": count, "queries": len(queries)}
        line |= {"build_cpu_s": round(built, 3), "cpu_ms_p50": round(spent[len(spent) // 2], 3)}
        print(json.dumps(line | {"cpu_ms_p95": round(spent[int(len(spent) * 0.95)], 3)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of the retrieval sets")
    parser.add_argument("--split", default="dev", help="which queries (default: dev)")
    parser.add_argument("--peers", action="store_true", help="also run the peers")
    parser.add_argument("--speed", action="store_true", help="also measure large catalogs")
    arguments = parser.parse_args()
    if not any(True for _ in Path(arguments.data).glob(f"*/queries.{arguments.split}.jsonl")):
        parser.error(f"no */queries.{arguments.split}.jsonl under {arguments.data}")
    run("toolcell", build, arguments.data, arguments.split)
    if arguments.speed:
        speed(arguments.data, arguments.split)
    if arguments.peers:
        peers(arguments.data, arguments.split)


if __name__ == "__main__":
    main()
