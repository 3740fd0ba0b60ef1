"""JSON text, deadlines and identifiers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.base.deadline import Deadline
from toolcell.base.identifiers import digest, fresh
from toolcell.base.jsontext import clip_utf8, clip_utf16, dumps, from_utf8, loads, utf8

any_text = st.text(st.characters(exclude_categories=()))


class HandClock:
    now = 0.0

    def monotonic(self):
        return self.now

    def wall(self):
        return self.now


@given(any_text, st.integers(-2, 40))
def test_a_utf8_clip_is_the_longest_whole_prefix(text, limit):
    got = clip_utf8(text, limit)
    assert text.startswith(got)
    assert len(utf8(got)) <= max(limit, 0)
    longer = text[: len(got) + 1]
    assert longer == got or len(utf8(longer)) > max(limit, 0)


@given(any_text, st.integers(0, 40))
def test_a_utf16_clip_never_splits_a_pair(text, limit):
    """BEHAVIOURS 134, rule 4.9."""
    got = clip_utf16(text, limit)
    units = len(got.encode("utf-16-le", "surrogatepass")) // 2
    assert text.startswith(got)
    assert units <= limit
    longer = text[: len(got) + 1]
    assert longer == got or len(longer.encode("utf-16-le", "surrogatepass")) // 2 > limit


@given(any_text)
def test_lone_surrogates_survive_json_and_utf8(text):
    assert loads(dumps(text)) == text
    assert loads(from_utf8(utf8(dumps(text)))) == loads(dumps(text))


def test_json_text_is_compact_and_refuses_nan():
    assert dumps({"a": [1, "é"]}) == '{"a":[1,"é"]}'
    with pytest.raises(ValueError, match="JSON"):
        dumps(float("nan"))


def test_a_deadline_stands_still_while_it_is_paused():
    """rule 3.5: an open approval pauses the budget; two of them pause it once."""
    clock = HandClock()
    deadline = Deadline(10, clock=clock)
    clock.now = 4
    with deadline.pause():
        clock.now = 100
        assert (deadline.remaining, deadline.paused) == (6, True)
        with deadline.pause():
            clock.now = 200
        assert deadline.remaining == 6
    assert (deadline.remaining, deadline.paused, deadline.expired) == (6, False, False)
    clock.now = 206
    assert deadline.expired


def test_identifiers_are_fresh_and_digests_keep_parts_apart():
    assert fresh("run") != fresh("run")
    assert fresh("run").startswith("run_")
    assert digest("a", "bc") != digest("ab", "c")
    assert len(digest("a")) == 24
