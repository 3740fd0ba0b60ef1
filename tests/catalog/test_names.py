"""Every name a guest or a provider sees a tool by."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.made import client, core, mcp, plugin
from toolcell.catalog.names import (
    callable_names,
    camel_case,
    convenience_names,
    is_identifier,
    mcp_method_identifiers,
    mcp_server_identifiers,
    provider_names,
    safe_name,
)
from toolcell.catalog.order import sort_key
from toolcell.catalog.reserved import RESERVED_GLOBALS

PROVIDER = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
NAMES = st.lists(
    st.text(alphabet="abAB12_-.$ /é#\n", max_size=6)
    | st.sampled_from(["return", "let", "foo_bar"]),
    min_size=1,
    max_size=12,
)


def test_order_is_punctuation_then_digits_then_letters_with_lower_case_first():
    """BEHAVIOURS: the locale-like order (`__openclaw_x` < `1st`, `list_invoices` < ...)."""
    texts = ["b", "A", "a", "1st", "__openclaw_x", "listInvoices", "list_invoices", "é", "e", "f"]
    assert sorted(texts, key=sort_key) == [
        "__openclaw_x",
        "1st",
        "a",
        "A",
        "b",
        "e",
        "é",
        "f",
        "list_invoices",
        "listInvoices",
    ]


@given(st.lists(st.text(max_size=8), unique=True))
def test_different_texts_never_tie(texts):
    """rule 4.1: the order is total, so equal sets give equal orders."""
    assert len({sort_key(text) for text in texts}) == len(texts)


@pytest.mark.parametrize("name", ["web_search", "$x", "async", "of", "process"])
def test_a_safe_name_is_kept_as_it_is(name):
    """BEHAVIOURS 168."""
    assert callable_names([core(name)]).by_id == {f"openclaw:core:{name}": name}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llm-task", "llm_task"),
        ("2fa.code", "tool_2fa_code"),
        ("1st", "tool_1st"),
        ("__openclaw_x", "tool___openclaw_x"),
        ("return", "return_707ba6d9"),
        ("json", "json_28de63dc"),
        ("console", "console_86088b0a"),
        ("tools", "tools_d88a81ed"),
    ],
)
def test_unsafe_and_reserved_names_are_spelled_as_measured(name, expected):
    """BEHAVIOURS 169, BEHAVIOURS 170, BEHAVIOURS 171, CN-03."""
    assert callable_names([core(name)]).by_id[f"openclaw:core:{name}"] == expected


@pytest.mark.parametrize("name", ["require", "module", "arguments", "let", "await", "Promise"])
def test_what_the_screen_or_the_wrapper_makes_uncallable_is_reserved(name):
    """rule 4.7 over BEHAVIOURS 168."""
    assert re.fullmatch(name + "_[0-9a-f]{8}", callable_names([core(name)]).by_id[core(name).id])


def test_two_spellings_of_one_identifier_both_stay_callable_in_any_order():
    """BEHAVIOURS 172, CN-01: order by base, then id."""
    tools = [plugin("a", "foo-bar"), plugin("b", "foo.bar")]
    expected = {"openclaw:a:foo-bar": "foo_bar", "openclaw:b:foo.bar": "foo_bar_8ce76358"}
    assert callable_names(tools).by_id == expected
    assert callable_names(tools[::-1]).by_id == expected


def test_the_exact_spelling_keeps_its_name():
    """BEHAVIOURS 173."""
    tools = [plugin("a", "foo-bar"), plugin("b", "foo_bar")]
    expected = {"openclaw:a:foo-bar": "foo_bar_1e94d1a8", "openclaw:b:foo_bar": "foo_bar"}
    assert callable_names(tools).by_id == expected


def test_a_suffix_that_is_taken_grows_by_two_digits():
    """BEHAVIOURS 174."""
    tools = [core("return"), core("return_707ba6d9")]
    names = callable_names(tools).by_id
    assert names["openclaw:core:return_707ba6d9"] == "return_707ba6d9"
    assert re.fullmatch("return_707ba6d9[0-9a-f]{2}", names["openclaw:core:return"])


def test_of_two_tools_with_one_name_the_first_in_catalog_order_wins_and_the_loser_is_named():
    """BEHAVIOURS 175, rule 4.7, CN-06."""
    names = callable_names([plugin("status", "session_status"), core("session_status")])
    assert names.by_id == {"openclaw:core:session_status": "session_status"}
    (diagnostic,) = names.diagnostics
    assert "'session_status'" in diagnostic
    assert "'status'" in diagnostic


def test_a_client_tool_wins_a_name():
    """BEHAVIOURS 175, CN-07."""
    names = callable_names([core("web_search"), client("web_search")])
    assert names.by_id == {"client:app:web_search": "web_search"}
    assert "openclaw:core:web_search" in names.diagnostics[0]


def test_mcp_tools_have_no_bare_global():
    """BEHAVIOURS 176."""
    assert callable_names([mcp("fx", "create")]).by_id == {}


@given(NAMES, st.randoms(use_true_random=False))
def test_callable_names_are_injective_identifiers_whatever_the_order(names, shuffler):
    """CN-01, rule 4.7."""
    tools = [plugin(f"p{index % 3}", name) for index, name in enumerate(dict.fromkeys(names))]
    found = callable_names(tools).by_id
    shuffled = tools[:]
    shuffler.shuffle(shuffled)
    assert callable_names(shuffled).by_id == found
    assert len(set(found.values())) == len(tools)
    assert all(is_identifier(name) and name not in RESERVED_GLOBALS for name in found.values())
    assert not any(name.startswith("__openclaw") for name in found.values())


def test_convenience_functions_exist_for_unambiguous_safe_names_only():
    """BEHAVIOURS 158, rule 4.7: on a collision none is installed; the methods stay."""
    tools = [core("llm-task"), plugin("a", "foo-bar"), plugin("b", "foo_bar"), mcp("fx", "list")]
    tools += [core(name) for name in ("search", "describe", "call", "callValue", "then", "return")]
    assert convenience_names(tools) == {
        "llm_task": "openclaw:core:llm-task",
        "return": "openclaw:core:return",
    }


def test_a_name_that_two_owners_share_has_no_convenience_function():
    """CN-06: with the tools API both ids stay callable and the shortcut is omitted."""
    assert convenience_names([core("session_status"), plugin("p", "session_status")]) == {}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("take_snapshot", "takeSnapshot"),
        ("create_issue", "createIssue"),
        ("Create Issue", "createIssue"),
        ("GET_user", "gETUser"),
        ("HTTPServer", "hTTPServer"),
        ("a.b/c", "aBC"),
        ("2fa", "fa"),
        ("issue #1", "issue1"),
        ("délivrer", "dLivrer"),
        ("___", "tool"),
        ("", "tool"),
        ("$api", "api"),
        ("constructor", "constructor2"),
        ("delete", "delete2"),
        ("prototype", "prototype2"),
        ("resources", "resources2"),
        ("prompts", "prompts2"),
    ],
)
def test_mcp_method_names_are_as_measured(raw, expected):
    """BEHAVIOURS 221, BEHAVIOURS 222, BEHAVIOURS 223, CN-04."""
    assert mcp_method_identifiers([raw]) == {raw: expected}


def test_mcp_server_names_are_as_measured():
    """BEHAVIOURS 221, BEHAVIOURS 222, BEHAVIOURS 223."""
    assert mcp_server_identifiers(["chrome-devtools", "class", "___", "then"]) == {
        "___": "server",
        "chrome-devtools": "chromeDevtools",
        "class": "class2",
        "then": "then2",
    }


def test_mcp_names_that_collide_are_numbered_in_locale_order():
    """BEHAVIOURS 224."""
    found = mcp_method_identifiers(["listInvoices", "list_invoices"])
    assert found == {"list_invoices": "listInvoices", "listInvoices": "listInvoices2"}


@given(NAMES, st.randoms(use_true_random=False))
def test_mcp_identifiers_are_injective_whatever_the_order(names, shuffler):
    """rule 5.3."""
    found = mcp_method_identifiers(names)
    shuffled = names[:]
    shuffler.shuffle(shuffled)
    assert mcp_method_identifiers(shuffled) == found
    assert len(set(found.values())) == len(set(names))
    assert all(is_identifier(name) for name in found.values())


def test_a_provider_name_that_fits_is_left_alone():
    """CN-09: `ok_tool` is unaffected."""
    names = provider_names([core("ok_tool"), mcp("orders", "ok_tool")])
    assert names.by_id == {
        "openclaw:core:ok_tool": "ok_tool",
        "mcp:orders:ok_tool": "orders__ok_tool",
    }
    assert names.diagnostics == ()


def test_names_outside_the_provider_alphabet_are_made_safe_and_listed():
    """CN-09."""
    tools = [mcp("s", name) for name in ("orders.fetch-one", "ops/users list", "поиск", "ok_tool")]
    names = provider_names(tools)
    assert all(PROVIDER.match(name) for name in names.by_id.values())
    assert len(set(names.by_id.values())) == 4
    assert len(names.diagnostics) == 3
    assert re.fullmatch("s__orders_fetch-one_[0-9a-f]{8}", names.by_id["mcp:s:orders.fetch-one"])


def test_long_names_with_one_beginning_stay_apart():
    """CN-10."""
    server = "s" * 40
    tools = [mcp(server, "t" * 70 + end) for end in ("one", "two")]
    names = provider_names(tools).by_id
    assert all(PROVIDER.match(name) for name in names.values())
    assert len(set(names.values())) == 2
    assert provider_names(tools[::-1]).by_id == names
    assert len(set(mcp_method_identifiers(t.tool.name for t in tools).values())) == 2


def test_server_and_tool_that_run_together_stay_apart():
    """CN-09: unique, although `a` + `b__c` and `a__b` + `c` are spelled alike."""
    names = provider_names([mcp("a", "b__c"), mcp("a__b", "c")]).by_id
    assert len(set(names.values())) == 2


def test_shuffling_never_changes_a_name():
    """rule 4.1, CN-01: deterministic for equal tool sets."""
    tools = [core("foo-bar"), plugin("a", "foo.bar"), client("foo_bar"), core("return")]
    tools += [mcp(server, name) for server in ("a-b", "a_b") for name in ("x-y", "x_y", "X Y")]
    expected = callable_names(tools).by_id, provider_names(tools).by_id
    for seed in range(20):
        random.Random(seed).shuffle(tools)
        assert (callable_names(tools).by_id, provider_names(tools).by_id) == expected


def test_safe_name_and_camel_case_are_plain_functions_of_the_text():
    """BEHAVIOURS 169, BEHAVIOURS 222."""
    assert safe_name("llm-task") == "llm_task"
    assert safe_name("") == "tool_"
    assert camel_case("1_2", fallback="tool") == "tool"
