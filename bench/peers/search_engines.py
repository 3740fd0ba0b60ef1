"""Other search engines over the retrieval sets; run by `retrieval.py --peers`.

Each gets the same texts: name, server, description, parameter names and descriptions.
"""

import argparse
import asyncio
import re
import sqlite3
import sys
from pathlib import Path

import bm25s
import Stemmer
import tantivy
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool
from rank_bm25 import BM25Okapi

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieval_sets import parameters, run

WORD = re.compile(r"\w+")


def texts(tools):
    return [
        " ".join(
            [
                tool["name"],
                tool.get("server") or "",
                tool.get("description") or "",
                *parameters(tool),
            ]
        )
        for tool in tools
    ]


def fastmcp(tools):
    """Build through the transform itself; then ask its index, sparing it the hash per query."""
    transform = BM25SearchTransform(max_results=20)
    made = []
    for tool in tools:
        server = tool.get("server")
        names, _ = parameters(tool)
        schema = (tool.get("parameters") or tool.get("inputSchema") or {}) if names else {}
        name = f"{server}_{tool['name']}" if server else tool["name"]
        fields = {"name": name, "description": tool.get("description") or ""}
        made.append(Tool.model_construct(**fields, parameters=schema))
    asyncio.run(transform._search(made, "warm up"))
    return lambda text, k: [tools[i]["id"] for i in transform._index.query(text, k)]


def bm25s_(tools):
    stemmer = Stemmer.Stemmer("english")
    options = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts(tools), **options), show_progress=False)

    def search(text, k):
        tokens = bm25s.tokenize([text], **options)
        found, scores = index.retrieve(tokens, k=min(k, len(tools)), show_progress=False)
        pairs = zip(found[0], scores[0], strict=True)
        return [tools[int(i)]["id"] for i, score in pairs if score > 0]

    return search


def rank_bm25(tools):
    index = BM25Okapi([WORD.findall(text.lower()) for text in texts(tools)])

    def search(text, k):
        scores = index.get_scores(WORD.findall(text.lower()))
        best = scores.argsort()[::-1][:k]
        return [tools[int(i)]["id"] for i in best if scores[i] > 0]

    return search


def fts5(tools):
    database = sqlite3.connect(":memory:")
    database.execute(
        "create virtual table t using fts5"
        "(name, server, description, names, texts, tokenize='porter unicode61')"
    )
    database.executemany(
        "insert into t values (?, ?, ?, ?, ?)",
        [(t["name"], t.get("server"), t.get("description"), *parameters(t)) for t in tools],
    )

    def search(text, k):
        words = dict.fromkeys(WORD.findall(text.lower()))
        if not words:
            return []
        asked = " OR ".join(f'"{word}"' for word in words)
        found = database.execute(
            "select rowid from t where t match ? order by bm25(t) limit ?", (asked, k)
        )
        return [tools[row - 1]["id"] for (row,) in found]

    return search


def tantivy_(tools):
    schema = tantivy.SchemaBuilder()
    schema.add_unsigned_field("number", stored=True)
    schema.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer()
    for number, text in enumerate(texts(tools)):
        writer.add_document(tantivy.Document(number=number, text=text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(text, k):
        query = index.parse_query(" ".join(WORD.findall(text.lower())), ["text"])
        hits = searcher.search(query, k).hits
        return [tools[searcher.doc(address)["number"][0]]["id"] for _, address in hits]

    return search


ENGINES = {
    "fastmcp": fastmcp,
    "bm25s": bm25s_,
    "rank_bm25": rank_bm25,
    "sqlite-fts5": fts5,
    "tantivy": tantivy_,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", default="dev")
    arguments = parser.parse_args()
    for name, build in ENGINES.items():
        run(name, build, arguments.data, arguments.split)
