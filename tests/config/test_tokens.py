"""What may be a token: one rule for the gateway and for `toolcell mcp serve --token`."""

import pytest

from toolcell.config.tokens import MIN_TOKEN_CHARS, usable_token
from toolcell.errors import ConfigError

GOOD = "0123456789abcdef"


@pytest.mark.parametrize("token", [GOOD, "a" * 4000, "!~+/=-_.0123456789"])
def test_what_a_header_carries_and_nobody_guesses_is_one(token):
    assert usable_token(token, path="gateway.token") == token


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("", "has 0 characters, too few to keep anybody out; give at least 16"),
        (GOOD[:-1], "has 15 characters"),
        (GOOD + "\n", "an end of line at place 17"),
        ("0123456789 abcdef", "a space or an end of line at place 11"),
        ("0123456789äbcdef", "a character beyond ASCII at place 11"),
        ("0123456789\x00bcdef", "at place 11"),
    ],
)
def test_anything_else_is_an_error_that_does_not_show_it(token, says):
    with pytest.raises(ConfigError, match=says) as caught:
        usable_token(token, path="gateway.token")
    assert caught.value.message.startswith("gateway.token: ")
    assert token == "" or token.strip() not in caught.value.message


def test_the_rule_is_what_the_pages_say():
    assert MIN_TOKEN_CHARS == 16
