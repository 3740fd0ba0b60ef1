"""The checklists and the tests agree, both ways."""

import re
from pathlib import Path

import pytest

from tests.checklists import CHECKLISTS

HERE = Path(__file__).parent
LENGTHS = {"000.": 24, "000.n": 10, "000.e": 16, "002.": 31, "002.e": 16}
STORIES = HERE / "reports" / "test_end_to_end.py"


def defined(file: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE))


def test_every_line_is_there_once():
    wanted = {f"{part}{n}" for part, last in LENGTHS.items() for n in range(1, last + 1)}
    assert set(CHECKLISTS) == wanted


@pytest.mark.parametrize("number", CHECKLISTS)
def test_a_line_has_tests_that_exist_or_a_named_gap(number):
    line = CHECKLISTS[number]
    assert line.says
    assert line.tests or line.gap
    for node in line.tests:
        file, _, name = node.partition("::")
        assert (HERE / file).is_file(), f"{number}: no file tests/{file}"
        assert name in defined(HERE / file), f"{number}: no test {node}"


def test_every_story_serves_a_line():
    """A test of the end-to-end plans that no line names is named here, or is not needed."""
    named = {node.partition("::")[2] for line in CHECKLISTS.values() for node in line.tests}
    more = {"test_a_cell_that_is_aborted_while_it_runs_says_so"}
    assert defined(STORIES) - named == more
