"""The retrieval sets and their measures, shared by `retrieval.py` and its peers. Standard library only."""

import json
import math
import time
from collections import Counter
from pathlib import Path

DEPTH = 20
MOSTLY = 0.9


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def sets(data, split):
    """Yield `(name, tools, queries)` of every set under `data` that has the split."""
    for queries in sorted(Path(data).glob(f"*/queries.{split}.jsonl")):
        yield queries.parent.name, rows(queries.parent / "tools.jsonl"), rows(queries)


def parts(queries):
    """Yield `(lang or None, queries)`: a set that is mostly of one language is measured whole."""
    counts = Counter(query["lang"] for query in queries)
    if max(counts.values()) >= MOSTLY * len(queries):
        yield None, queries
        return
    for lang in sorted(counts):
        yield lang, [query for query in queries if query["lang"] == lang]


def measure(search, queries):
    """Measure `search(text, k) -> ids` over `queries`."""
    sums = dict.fromkeys(("R@1", "R@5", "R@8", "R@20", "nDCG@10", "MRR", "hit@8"), 0.0)
    spent = []
    for query in queries:
        start = time.thread_time()
        ids = search(query["query"], DEPTH)
        spent.append((time.thread_time() - start) * 1e3)
        relevant = set(query["relevant"])
        for k in (1, 5, 8, 20):
            found = len(relevant & set(ids[:k]))
            sums[f"R@{k}"] += found / (1 if k == 1 else len(relevant))
        gains = [1 / math.log2(i + 2) for i, one in enumerate(ids[:10]) if one in relevant]
        ideal = [1 / math.log2(i + 2) for i in range(min(len(relevant), 10))]
        sums["nDCG@10"] += sum(gains) / sum(ideal)
        sums["MRR"] += next((1 / (i + 1) for i, one in enumerate(ids) if one in relevant), 0.0)
        sums["hit@8"] += bool(relevant & set(ids[:8]))
    out = {name: round(total / len(queries), 4) for name, total in sums.items()}
    spent.sort()
    out["queries"] = len(queries)
    out["cpu_ms_p50"] = round(spent[len(spent) // 2], 3)
    out["cpu_ms_p95"] = round(spent[int(len(spent) * 0.95)], 3)
    return out


def run(engine, build, data, split):
    """Print one JSON line for each set of an engine, then its mean over the English sets."""
    means = []
    for name, tools, queries in sets(data, split):
        start = time.thread_time()
        search = build(tools)
        built = round(time.thread_time() - start, 3)
        for lang, some in parts(queries):
            result = {"engine": engine, "set": name, **({"lang": lang} if lang else {})}
            result |= measure(search, some) | {"tools": len(tools), "build_cpu_s": built}
            print(json.dumps(result), flush=True)
            english = sum(query["lang"] == "en" for query in some)
            if lang is None and english >= MOSTLY * len(some):
                means.append(result)
    if means:
        names = ("R@1", "R@5", "R@8", "R@20", "nDCG@10", "MRR")
        mean = {n: round(sum(m[n] for m in means) / len(means), 4) for n in names}
        line = {"engine": engine, "set": "mean", "sets": len(means), **mean}
        print(json.dumps(line), flush=True)


def parameters(tool):
    """Return the parameter names and descriptions of a tool's own level."""
    schema = tool.get("parameters") or tool.get("inputSchema") or {}
    found = schema.get("properties") if isinstance(schema, dict) else None
    found = found if isinstance(found, dict) else {}
    texts = [part.get("description") for part in found.values() if isinstance(part, dict)]
    return " ".join(found), " ".join(text for text in texts if isinstance(text, str))
