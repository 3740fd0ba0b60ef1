"""Secrets are found by name, by value and by shape, and nothing else is touched."""

import json

import pytest

from toolcell.base.masking import MASK, Masker, names_a_secret

CANARY = "S3CR3T-CANARY-0001"


HIDDEN_NAMES = """
    apiKey api_key x-api-key API_KEY accessToken token Authorization Set-Cookie db_password
    clientSecret AWS_SECRET_ACCESS_KEY privateKey credentials GITHUB_TOKEN
"""
OTHER_NAMES = """
    key tokens max_tokens inputTokens nextPageToken page_token primaryKey author keyboard id
"""


@pytest.mark.parametrize("name", HIDDEN_NAMES.split())
def test_names_of_secrets(name):
    """SE-08"""
    assert names_a_secret(name)


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_names_of_other_things(name):
    assert not names_a_secret(name)


def test_values_are_masked_wherever_they_stand_and_however_they_are_escaped():
    """SE-08: keys, nested JSON texts, addresses."""
    value_with_quotes = 'a"b/c d\\ü'
    masker = Masker([value_with_quotes, CANARY])
    inner = json.dumps({"x": json.dumps({"y": value_with_quotes})})
    value = {CANARY: [f"see {CANARY}.", inner, "q=a%22b%2Fc%20d%5C%C3%BC"], "n": 1, "ok": True}
    text = json.dumps(masker.value(value), ensure_ascii=False)
    assert CANARY not in text
    assert "b/c" not in text
    assert "b%2Fc" not in text
    assert '"n": 1, "ok": true' in text


def test_named_values_are_masked_and_schemas_that_describe_them_are_not():
    value = {
        "password": "hunter22",
        "pin": {"secret": 1234},
        "properties": {"password": {"type": "string"}, "token": {"type": "string"}},
        "usage": {"max_tokens": 5, "input_tokens": 7},
        "auth": {"token": None, "secret": ""},
    }
    assert Masker().value(value) == {
        **value,
        "password": MASK,
        "pin": {"secret": MASK},
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"apiKey":"abcd1234"}', f'{{"apiKey":"{MASK}"}}'),
        (r"{\"apiKey\": \"abcd1234\"}", rf"{{\"apiKey\": \"{MASK}\"}}"),
        ("const password = 'hunter22';", f"const password = '{MASK}';"),
        ("GET /x?api_key=abcd1234&y=1", f"GET /x?api_key={MASK}&y=1"),
        ("GITHUB_TOKEN=abcd1234 make", f"GITHUB_TOKEN={MASK} make"),
        ("Authorization: Bearer abc.def-123", f"Authorization: Bearer {MASK}"),
        ("postgres://me:hunter22@db/x", f"postgres://me:{MASK}@db/x"),
        ("key sk-abcdefghijklmnop done", f"key {MASK} done"),
        ("ghp_abcdefghijklmnopqrstuvwxyz", MASK),
        ("AKIAABCDEFGHIJKLMNOP", MASK),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF", MASK),
        ("-----BEGIN RSA PRIVATE KEY-----\nab\n-----END RSA PRIVATE KEY-----", MASK),
    ],
)
def test_secrets_are_known_by_their_shape(text, shown):
    """SE-08"""
    assert Masker().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "const secret = await get_secret();",
        "return {token: page.nextPageToken}",
        "password: string",
        "https://example.com/a:b@c",
        "the secret: be kind",
        '{"description": "an API key"}',
    ],
)
def test_programs_and_prose_stay_as_they_are(text):
    assert Masker().text(text) == text


def test_what_stood_under_a_secrets_name_is_known_everywhere_afterwards():
    masker = Masker()
    masker.learn([{"deep": {"sessionToken": "abc-123-xyz"}}, {"pin": "1234"}])
    assert masker.text("it was abc-123-xyz, 1234") == f"it was {MASK}, 1234"


def test_a_value_without_end_is_masked_as_a_whole():
    deep = "x"
    for _ in range(5000):
        deep = [deep]
    assert Masker().value(deep) == MASK
