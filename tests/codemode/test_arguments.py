"""Arguments of exec and wait, and what hooks see of them."""

import pytest

from toolcell.codemode.arguments import (
    exec_arguments,
    hook_input_kind,
    rewritten_by_hooks,
    shown_to_hooks,
    wait_argument,
)
from toolcell.errors import CellError

RETIRED = (
    "Code Mode accepts JavaScript only. Remove language and typecheck; use API.read(...) for tool "
    "types."
)


def catalog(**arguments):
    return exec_arguments(arguments, guest_api="catalog")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"code": "a", "command": "b"}, "code and command must match when both are provided."),
        ({}, "code or command must be a non-empty string."),
        ({"code": "  ", "command": ""}, "code or command must be a non-empty string."),
        ({"code": 5}, "code or command must be a non-empty string."),
        ({"code": "1", "restartSafe": "yes"}, "restartSafe must be a boolean."),
        (
            {"code": "1", "language": "javascript"},
            RETIRED,
        ),
        (
            {"code": "1", "typecheck": False},
            RETIRED,
        ),
    ],
)
def test_bad_arguments_are_refused_to_the_letter(arguments, message):
    """rule 3.1, BEHAVIOURS 66, BEHAVIOURS 67, BEHAVIOURS 69, BEHAVIOURS 70."""
    with pytest.raises(CellError) as caught:
        catalog(**arguments)
    assert caught.value.message == message
    assert (caught.value.code, caught.value.phase) == ("invalid_input", "input")


def test_the_filled_alias_is_used():
    """rule 3.1, BEHAVIOURS 68."""
    assert catalog(command="return 7;").code == "return 7;"
    assert catalog(code=" ", command="return 7;").code == "return 7;"
    assert catalog(code="x", command="x").code == "x"


def test_a_disabled_language_is_refused():
    """BEHAVIOURS 72."""
    given = {"code": "1", "language": "typescript"}
    with pytest.raises(CellError, match="not enabled"):
        exec_arguments(given, guest_api="tools", languages=("javascript",))
    assert exec_arguments(given, guest_api="tools").language == "typescript"
    with pytest.raises(CellError, match="'javascript' or 'typescript'"):
        exec_arguments({"code": "1", "language": "ruby"}, guest_api="tools")


def test_wait_takes_either_spelling_and_trims():
    """BEHAVIOURS 71."""
    assert wait_argument({"runId": " cm_1 "}) == "cm_1"
    assert wait_argument({"run_id": "cm_1"}) == "cm_1"
    for bad in ({}, {"runId": " "}, {"runId": 3}):
        with pytest.raises(CellError, match=r"runId must be a non-empty string\."):
            wait_argument(bad)


def test_hooks_see_both_aliases():
    """BEHAVIOURS 75."""
    assert shown_to_hooks({"code": "x"}) == {"code": "x", "command": "x"}
    assert shown_to_hooks({"command": "x", "title": "t"}) == {
        "code": "x",
        "command": "x",
        "title": "t",
    }
    assert shown_to_hooks({"code": "a", "command": "b"}) == {"code": "a", "command": "b"}


def test_a_rewrite_of_one_alias_takes_the_other_along():
    """BEHAVIOURS 76."""
    shown = shown_to_hooks({"code": "x"})
    assert rewritten_by_hooks(shown, {**shown, "command": "y"})["code"] == "y"
    assert rewritten_by_hooks(shown, {**shown, "code": "y"})["command"] == "y"
    assert rewritten_by_hooks(shown, shown) == shown


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_blanked_alias_makes_the_call_invalid(blank):
    """BEHAVIOURS 77: never the old text."""
    shown = shown_to_hooks({"code": "x"})
    after = rewritten_by_hooks(shown, {**shown, "code": blank})
    with pytest.raises(CellError, match="non-empty"):
        exec_arguments(after, guest_api="catalog")


def test_the_input_kind_is_known_or_absent():
    """rule 3.12, BEHAVIOURS 74."""
    assert hook_input_kind({"code": "x"}, guest_api="catalog") == "javascript"
    assert hook_input_kind({"code": "x", "language": "typescript"}, guest_api="catalog") is None
    assert hook_input_kind({"language": "typescript"}, guest_api="tools") == "typescript"
