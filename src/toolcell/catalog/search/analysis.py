"""Owns how text becomes index terms: word splitting, identifier splitting, stop words, stems.

Above: documents, queries. Below: PyStemmer. Refuses to know: fields and weights.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

import Stemmer

WORD: Final = re.compile(r"[^\W_]+")
CJK_RUN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]+")
# An acronym with a plural s (`URLs`), an acronym before a word, a word, an acronym, digits.
_PIECE: Final = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_MOST_JOINED_PIECES: Final = 4

# English function words, and the words every tool description and request is full of.
_STOP_WORDS = """
a an and are as at be but by can could do does for from get how i if in into is it its me my of on
or our please s so such that the their them then there these they this to us use used using was we
what when where which who will with would you your want need like m ve let tool tools allow allows
should also any all some give help tell know just about more have has had am not no up out than
been being might must may looking interested wondering trying planning kindly here very really im
one own too now only over under other because while during before after above below between again
further once both each few most he she his her him hers whom whose why were did doing having got
getting gets gives given giving go going lets wants wanted needs needed helps helping likes make
makes making made sure thank thanks hello hi hey okay ok
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

_ACRONYMS: Final = frozenset(
    {"pdf", "csv", "png", "jpg", "svg", "xml", "html", "nft", "vm", "tv", "pc", "cd", "dvd", "cv"}
)

_stem = Stemmer.Stemmer("english").stemWord


def terms(text: str) -> list[str]:
    """Return the index terms of `text`, repeats kept, stop words left out."""
    out: list[str] = []
    for word in words(text):
        out.extend(word_terms(word))
    return out


def words(text: str) -> list[str]:
    """Return the words of `text` as written, width and compatibility forms folded."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return WORD.findall(text)


@lru_cache(maxsize=100_000)
def word_terms(word: str) -> tuple[str, ...]:
    """Return the terms of one word: its pieces and, for a compound, the whole (`GitHub`).

    ASCII pieces are stemmed (Porter2); Chinese, Japanese and Korean runs become bigrams; other
    scripts stay whole. Accents of Latin letters are folded.
    """
    if not word.isascii():
        if CJK_RUN.search(word):
            return tuple(_mixed_terms(word))
        word = fold_accents(word)
    return tuple(_stem(piece) for piece in pieces(word) if piece not in STOP_WORDS)


def pieces(word: str) -> list[str]:
    """Split one word at changes of case and between letters and digits, in lower case."""
    if not word.isascii():
        return [word.lower()]
    whole = word.lower()
    found = [_singular(piece) for piece in _PIECE.findall(word)]
    if len(found) <= 1:
        return found or [whole]
    if len(found) <= _MOST_JOINED_PIECES:
        found.append(whole)
    return found


def _singular(piece: str) -> str:
    """Return a piece in lower case, an acronym without its plural s, which no stemmer sees."""
    low = piece.lower()
    if low.endswith("s") and (low[:-1] in _ACRONYMS or (piece[:-1].isupper() and piece[-1] == "s")):
        return low[:-1]
    return low


def fold_accents(word: str) -> str:
    """Return `word` without accents when that leaves plain ASCII, else unchanged in lower case."""
    parts = unicodedata.normalize("NFD", word)
    bare = "".join(char for char in parts if not unicodedata.combining(char))
    return bare if bare.isascii() else word.lower()


def stem(word: str) -> str:
    """Return the stem of one lower-case ASCII word."""
    return str(_stem(word))


def _mixed_terms(word: str) -> list[str]:
    out: list[str] = []
    position = 0
    for match in CJK_RUN.finditer(word):
        if match.start() > position:
            out.extend(word_terms(word[position : match.start()]))
        out.extend(bigrams(match.group()))
        position = match.end()
    if position < len(word):
        out.extend(word_terms(word[position:]))
    return out


def bigrams(run: str) -> list[str]:
    """Return the overlapping character pairs of a run; a lone character is itself."""
    if len(run) == 1:
        return [run]
    return [run[index : index + 2] for index in range(len(run) - 1)]
