"""What is recorded is bounded, in size and in the time it takes."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sessions.events import scope
from toolcell.protocol.events import CellStepped
from toolcell.sessions import records
from toolcell.sessions.bounds import bounded
from toolcell.sessions.records import to_record

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_what_fits_is_kept_exactly(value):
    assert bounded(value, 1 << 20) == json.loads(json.dumps(value))


@settings(max_examples=60, deadline=None)
@given(JSON, st.integers(0, 300))
def test_what_does_not_fit_is_cut_near_the_limit(value, limit):
    size = len(json.dumps(bounded(value, limit), ensure_ascii=False).encode(errors="surrogatepass"))
    # Escapes, the marker and what a container opened before it was cut stand outside of the count.
    assert size <= 6 * limit + 200


def test_the_time_is_that_of_what_is_kept():
    """50 MB and a million entries are cut in about the time 64 KiB take."""
    huge = {"text": "x" * 50_000_000, "rows": [{"a": i} for i in range(1_000_000)]}
    start = time.process_time()
    assert bounded(huge, 1 << 16)["truncated"] is True
    assert bounded(huge["rows"], 1 << 16)["truncated"] is True
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("text", ["é" * 50, "😀" * 50, "x" * 50, "\ud800" * 50])
def test_text_is_cut_between_characters(text):
    kept = bounded(text, 20)["prefix"]
    assert text.startswith(kept)
    assert len(kept.encode("utf-8", "surrogatepass")) <= 20


def test_only_large_items_of_a_step_are_looked_into(monkeypatch):
    """A program may emit a hundred thousand lines in one step; a store in memory is on the loop."""
    looked = []

    def counted(value, limit):
        looked.append(value)
        return bounded(value, limit)

    monkeypatch.setattr(records, "bounded", counted)
    lines = [{"type": "text", "text": f"n{i}"} for i in range(1000)]
    lines.append({"type": "text", "text": "x" * 5000})
    asked = ({"id": 1, "method": "m", "args": "[1]"},)
    step = CellStepped(
        scope=scope(), at=1.0, call_id="c", cell_id="cm", number=1, output=lines, requests=asked
    )
    body = to_record(step, 4096).data()
    assert body["output"][:1000] == lines[:1000]
    assert body["output"][1000]["truncated"] is True
    assert body["requests"] == list(asked)
    assert len(looked) < 10
