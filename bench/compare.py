"""toolcell beside its peers, in one run: a warm cell, 100 calls in a row, 100 at once; two bombs.

Run: python bench/compare.py
Each peer is installed into an environment of its own under the user's cache folder, the first time.
Prints one JSON line for each, then a table of ratios against toolcell.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import psutil
from cells import PARALLEL, SEQUENTIAL, median, tools, value_of

from toolcell import CodeMode

HERE = Path(__file__).parent / "peers"
CACHE = Path.home() / ".cache" / "toolcell" / "bench"
PYTHON_PEERS = {
    "monty": ("monty.py", ["pydantic-monty"]),
    "fastmcp": ("fastmcp_codemode.py", ["fastmcp[code-mode]"]),
    "langchain-quickjs": ("langchain_quickjs_repl.py", ["langchain-quickjs"]),
}
CONFIG = {"tools": {"codeMode": {"maxPendingToolCalls": 128}}}
BOMBS = {
    "typed arrays, 64 MiB asked": "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "string building, 2 s asked": "let s = ''; for (;;) { s += 'abc'; if (s.length > 1e6) s = ''; }",
}


async def toolcell():
    async with CodeMode(tools=tools(100), config=CONFIG, executor="quickjs") as cm:
        return {
            "peer": "toolcell",
            "cell_ms": round(await median(lambda: value_of(cm, "return 1 + 2"), 100), 2),
            "sequential_100_ms": round(await median(lambda: value_of(cm, SEQUENTIAL), 10), 2),
            "parallel_100_ms": round(await median(lambda: value_of(cm, PARALLEL), 10), 2),
        }


def python_peer(name):
    script, packages = PYTHON_PEERS[name]
    folder = CACHE / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *packages], check=True)
        (folder / "ready").touch()
    return measured([str(python), str(HERE / script)], HERE)


def npm_peer():
    if shutil.which("npm") is None:
        return {"peer": "npm run", "skipped": "npm is not installed"}
    folder = CACHE / "npm-run"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "run").exists():
        subprocess.run(["npm", "install", "--silent", "run"], cwd=folder, check=True)
    shutil.copy(HERE / "npm_run.mjs", folder / "npm_run.mjs")
    return measured(["node", "npm_run.mjs"], folder)


def measured(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"peer": command[-1], "failed": (done.stderr or done.stdout).strip()[-300:]}
    return json.loads(lines[-1])


BOMB = """
import asyncio, json, sys, time
sys.path.insert(0, {here!r})
from cells import tools
from toolcell import CodeMode
async def main():
    config = {{"tools": {{"codeMode": {{"timeoutMs": 2000}}}}}}
    async with CodeMode(tools=tools(10), config=config, executor="quickjs") as cm:
        await cm.exec("return 1")
        print("ready", flush=True)
        start = time.perf_counter()
        outcome = await cm.exec({code!r})
        took = time.perf_counter() - start
        alive = await cm.exec("return 1")
        print(json.dumps([outcome.to_dict()["error"][:60], outcome.code, took, alive.value]))
asyncio.run(main())
"""


def bomb(name, code):
    """Run a bomb in a child process and watch its memory from outside."""
    source = BOMB.format(here=str(Path(__file__).parent), code=code)
    child = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    watched = psutil.Process(child.pid)
    before, peak, over = watched.memory_info().rss, [0], threading.Event()

    def watch():
        while not over.is_set():
            try:
                peak[0] = max(peak[0], watched.memory_info().rss)
            except psutil.Error:
                return
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    error, kind, took, alive = json.loads(child.stdout.readline())
    over.set()
    thread.join()
    child.wait()
    return {
        "bomb": name,
        "code": kind,
        "error": error,
        "seconds": round(took, 2),
        "rss_growth_mb": round((peak[0] - before) / 2**20, 1),
        "next_cell_works": alive == 1,
    }


def main():
    print(json.dumps({"load": os.getloadavg(), "cpus": os.cpu_count()}), flush=True)
    ours = asyncio.run(toolcell())
    rows = [ours]
    print(json.dumps(ours), flush=True)
    for make in (*(lambda n=name: python_peer(n) for name in PYTHON_PEERS), npm_peer):
        rows.append(make())
        print(json.dumps(rows[-1]), flush=True)
    for name, code in BOMBS.items():
        print(json.dumps(bomb(name, code)), flush=True)
    keys = ("cell_ms", "sequential_100_ms", "parallel_100_ms")
    print(f"\n{'times toolcell':20}" + "".join(f"{key:>20}" for key in keys))
    for row in rows:
        if "cell_ms" in row:
            ratios = "".join(f"{row[key] / ours[key]:20.2f}" for key in keys)
            print(f"{row['peer']:20}{ratios}")


if __name__ == "__main__":
    main()
