"""Frames: what the host makes of what a guest hands over."""

from __future__ import annotations

import json

import pytest

from toolcell.execution.frames import FrameError, FrameKind, read_frames, start_message


def test_frames_become_requests_output_and_a_value() -> None:
    """rule 8.5."""
    handed = read_frames(
        [(1, '1 echo [{"a": "b c"}]'), (2, "text"), (3, "[1]"), (6, "7"), (4, "null")], "u.js"
    )
    assert (handed.requests[0].method, handed.requests[0].args) == ("echo", '[{"a": "b c"}]')
    assert [frame.type for frame in handed.output] == ["text", "json"]
    assert (handed.withdrawn, handed.value) == ([7], "null")


def test_a_request_withdrawn_in_its_own_step_was_never_made() -> None:
    """BEHAVIOURS 209."""
    handed = read_frames([(1, "1 sleep [5]"), (6, "1")], "u.js")
    assert (handed.requests, handed.withdrawn) == ([], [])


def test_an_error_keeps_only_frames_of_the_users_file() -> None:
    """EX-03, rule 3.10."""
    stack = "    at x (controller.mjs:1:2)\n    at f (u.js:3:9)\n    at <anonymous> (u.js:5:1)"
    report = json.dumps({"name": "E", "message": "m", "stack": stack, "request_id": 4})
    error = read_frames([(5, report)], "u.js").error
    assert error is not None
    assert error.stack == "    at f (u.js:3:9)\n    at <anonymous> (u.js:5:1)"
    assert (error.line, error.column, error.request_id) == (3, 9, 4)


@pytest.mark.parametrize(
    "frame",
    [(9, ""), (1, "x echo []"), (1, "1 echo"), (5, "{"), (5, "[]"), (6, "-1"), (1, "٣ a []")],
)
def test_frames_of_no_controller_of_ours_are_refused(frame: tuple[int, str]) -> None:
    """rule 9.3: a guest that broke its engine is not believed."""
    with pytest.raises(FrameError):
        read_frames([frame], "u.js")


def test_the_start_message_is_json_whatever_the_source_holds() -> None:
    """rule 3.1."""
    message = start_message('"\ud83d\n</script>', "u.js", '{"e":{}}')
    assert json.loads(message)["source"] == '"\ud83d\n</script>'
    assert FrameKind.REQUEST == 1
