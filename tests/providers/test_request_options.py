"""A client's options in the words of each wire."""

import pytest

from toolcell.providers.request_options import options_for

GIVEN = {
    "temperature": 0.5,
    "max_completion_tokens": 9,
    "seed": 1,
    "stop": "END",
    "reasoning_effort": "low",
    "response_format": {"type": "json_schema", "json_schema": {"name": "f", "schema": {}}},
}


@pytest.mark.parametrize(
    ("api", "expected"),
    [
        ("openai-chat", GIVEN),
        (
            "openai-responses",
            {
                "temperature": 0.5,
                "max_output_tokens": 9,
                "reasoning": {"effort": "low"},
                "text": {"format": {"type": "json_schema", "name": "f", "schema": {}}},
            },
        ),
        (
            "anthropic",
            {
                "temperature": 0.5,
                "max_tokens": 9,
                "stop_sequences": ["END"],
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "low"},
            },
        ),
    ],
)
def test_each_wire_gets_its_own_words(api, expected):
    assert options_for(api, GIVEN) == expected


def test_the_older_name_of_the_limit_counts_too():
    assert options_for("anthropic", {"max_tokens": 5, "stop": ["a", "b"]}) == {
        "max_tokens": 5,
        "stop_sequences": ["a", "b"],
    }
    assert options_for("openai-responses", {"max_tokens": 5}) == {"max_output_tokens": 5}
