"""Owns the translation of query phrases into English index words.

Above: queries. Below: `concepts.txt`, `analysis`. Refuses to know: what is searched.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from toolcell.catalog.search.analysis import CJK_RUN, WORD

MAIN: Final = 1.0
ALTERNATIVE: Final = 0.7
_COMPOUND_DISCOUNT: Final = 0.8
_SHORTEST_COMPOUND: Final = 9
_SHORTEST_COMPOUND_PART: Final = 5
# Single characters that are words of their own; others are too often part of another word.
_LONE_CHARACTERS: Final = frozenset("站表駅株包榜宿")
# Any of these makes a query English, and no word of it is read as German or Spanish.
_ENGLISH: Final = frozenset(
    {"the", "of", "to", "for", "with", "and", "is", "are", "my", "this", "that", "from", "what"}
    | {"how", "your", "you", "i", "it", "can", "all", "by", "at"}
)
# German or Spanish words that mean something else in English: they count beside another one.
_FALSE_FRIENDS: Final = frozenset({"red", "land", "gen", "lied", "canal", "actual"})
_CJK_COLUMNS: Final = 3
_GERMAN: Final = 3


class Translation(NamedTuple):
    """English words for one phrase of a query, and where the phrase starts."""

    phrase: str
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """English words by phrase of each script; Latin phrases are in lower case without accents.

    `phrases` has the Latin phrases of several words, each also with its words parted by blanks.
    """

    cjk: dict[str, tuple[str, ...]] = field(default_factory=dict)
    latin: dict[str, tuple[str, ...]] = field(default_factory=dict)
    german: dict[str, tuple[str, ...]] = field(default_factory=dict)
    phrases: tuple[tuple[str, str], ...] = ()
    longest_cjk: int = 1

    def translate(self, query: str) -> list[Translation]:
        """Return the translations of every known phrase in `query`, in order of script."""
        found = [hit for run in CJK_RUN.findall(query) for hit in self._translate_run(run)]
        if any(char.isalpha() and ord(char) < 0x250 for char in query):
            found.extend(self._translate_latin(plain(query)))
        return found

    def _translate_run(self, run: str) -> list[Translation]:
        found: list[Translation] = []
        start = 0
        while start < len(run):
            for length in range(min(self.longest_cjk, len(run) - start), 0, -1):
                phrase = run[start : start + length]
                words = self.cjk.get(phrase)
                if words and (length > 1 or phrase in _LONE_CHARACTERS):
                    found.append(Translation(phrase, _weighted(words)))
                    start += length
                    break
            else:
                start += 1
        return found

    def _translate_latin(self, query: str) -> list[Translation]:
        asked = WORD.findall(query)
        if not _ENGLISH.isdisjoint(asked):
            return []
        spaced = f" {' '.join(asked)} "
        found = [
            Translation(phrase, _weighted(self.latin[phrase]))
            for phrase, spelled in self.phrases
            if spelled in spaced
        ]
        for word in asked:
            words = self.latin.get(word)
            if words:
                found.append(Translation(word, _weighted(words)))
            elif len(word) >= _SHORTEST_COMPOUND:
                found.extend(self._translate_compound(word))
        return found if any(hit.phrase not in _FALSE_FRIENDS for hit in found) else []

    def _translate_compound(self, word: str) -> list[Translation]:
        """German joins words: look for known ones inside."""
        return [
            Translation(word, _weighted(words, _COMPOUND_DISCOUNT))
            for part, words in self.german.items()
            if len(part) >= _SHORTEST_COMPOUND_PART and part in word
        ]


def plain(text: str) -> str:
    """Return `text` in lower case without accents."""
    parts = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in parts if not unicodedata.combining(char))


def _weighted(words: tuple[str, ...], factor: float = 1.0) -> tuple[tuple[str, float], ...]:
    return tuple(
        (word, factor * (MAIN if index == 0 else ALTERNATIVE)) for index, word in enumerate(words)
    )


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """Return the lexicon, read from `concepts.txt` when first asked for."""
    tables: list[dict[str, list[str]]] = [{}, {}, {}]
    cjk, german, spanish = tables
    text = files("toolcell.catalog.search").joinpath("concepts.txt").read_text(encoding="utf-8")
    for row in text.splitlines():
        if row.startswith("#"):
            continue
        english, *columns = (cell.strip() for cell in row.split("|"))
        for column, cell in enumerate(columns):
            table = cjk if column < _CJK_COLUMNS else german if column == _GERMAN else spanish
            for phrase in filter(None, (part.strip() for part in cell.split("/"))):
                words = table.setdefault(phrase if table is cjk else plain(phrase), [])
                words.extend(word for word in english.split() if word not in words)
    latin = {phrase: list(words) for phrase, words in spanish.items()}
    for phrase, words in german.items():
        known = latin.setdefault(phrase, [])
        known.extend(word for word in words if word not in known)
    return Lexicon(
        cjk={phrase: tuple(words) for phrase, words in cjk.items()},
        latin={phrase: tuple(words) for phrase, words in latin.items()},
        german={phrase: tuple(words) for phrase, words in german.items()},
        phrases=tuple(
            (phrase, f" {' '.join(WORD.findall(phrase))} ")
            for phrase in latin
            if " " in phrase or "-" in phrase
        ),
        longest_cjk=max(map(len, cjk)),
    )
