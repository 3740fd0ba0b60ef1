"""The manifest and the tests agree, both ways."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import GAPS, LAST_BEHAVIOUR, REPORT_AREAS, RULES

RULE = re.compile(r"\brules? (\d+\.\d+)")
BEHAVIOUR = re.compile(r"\bBEHAVIOURS (\d+)")
REPORT = re.compile(r"\b([A-Z]{2})-(\d\d)\b")
HERE = Path(__file__).parent


def texts() -> Iterator[str]:
    for file in HERE.rglob("test_*.py"):
        if file != Path(__file__):
            yield file.read_text(encoding="utf-8")
    for file in HERE.rglob("cases_*.py"):
        yield file.read_text(encoding="utf-8")


def cited() -> set[str]:
    return {number for text in texts() for number in RULE.findall(text)}


def test_every_rule_has_a_test_or_is_a_named_gap():
    uncovered = set(RULES) - cited() - set(GAPS)
    assert not uncovered, f"no test names {sorted(uncovered)}"


def test_a_gap_that_is_covered_is_no_gap():
    stale = cited() & set(GAPS)
    assert not stale, f"take these out of GAPS: {sorted(stale)}"


def test_tests_cite_only_rules_that_exist():
    assert cited() <= set(RULES), sorted(cited() - set(RULES))
    assert set(GAPS) <= set(RULES)


def test_tests_cite_only_behaviours_and_reports_that_exist():
    for text in texts():
        for number in BEHAVIOUR.findall(text):
            assert 1 <= int(number) <= LAST_BEHAVIOUR
        for area, number in REPORT.findall(text):
            if area in REPORT_AREAS:
                assert 1 <= int(number) <= REPORT_AREAS[area], f"{area}-{number}"
