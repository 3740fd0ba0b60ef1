"""The lists of what the tests must prove (rule 13 of the contract), line by line.

`000` is the list of the document with the tools API, `002` of the one with the catalog API; `e` is
a step of the end-to-end plan, `n` a line on plugin namespaces. Each line names the tests that prove
it, as `folder/test_file.py::test_name` below `tests`, or says why there is none yet.
`tests/test_checklists.py` holds the table and the tests to each other.
"""

from dataclasses import dataclass

E2E = "reports/test_end_to_end.py"
CONFIG = "reports/test_config.py"
WAITING = "codemode/test_waiting.py"
RESUME = "reports/test_resume.py"
NAMESPACES = "codemode/test_namespaces.py"
ISOLATION = "execution/conformance/test_isolation.py"


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        says: What must hold, in English.
        tests: Where it is shown.
        gap: What of it is not shown yet, and why; empty for nothing.
    """

    says: str
    tests: tuple[str, ...] = ()
    gap: str = ""


def line(says: str, *tests: str, gap: str = "") -> Line:
    return Line(says, tests, gap)


_ON = (
    f"{E2E}::test_turning_it_on_changes_only_what_the_model_sees",
    "reports/test_payload.py::test_direct_only_tools_stay_in_the_payload_and_out_of_the_catalog",
)
_OFF = f"{CONFIG}::test_disabled_code_mode_leaves_the_payload_byte_for_byte"
_ONLY_TRUE = f"{CONFIG}::test_only_true_enables"
_NO_TOOLS = (
    f"{CONFIG}::test_a_run_without_tools_is_not_enforced",
    "surface/test_activation_and_enforcement.py::test_what_a_runs_tools_are_put_behind",
)
_DENIED = "reports/test_policy.py::test_a_denied_tool_is_nowhere_and_cannot_be_guessed"
_BY_ID = f"{E2E}::test_a_cell_calls_each_kind_of_tool_by_exact_id"
_BY_NAME = f"{E2E}::test_a_cell_calls_each_kind_of_tool_without_knowing_ids"
_FILES = (
    f"{E2E}::test_declarations_are_read_without_a_call",
    "codemode/test_declarations.py::test_files_are_listed_and_read_without_a_bridge_or_tool_call",
)
_HEADER = f"{E2E}::test_the_header_of_a_server_stands_in_for_a_schema"
_AGREE = f"{E2E}::test_handles_and_the_namespace_agree_and_all_stays_native"
_NO_TOOL_SEARCH = f"{E2E}::test_tool_search_controls_are_nowhere"
_CHECKS = (
    "reports/test_policy.py::test_a_tool_that_needs_approval_is_asked_for_once",
    "reports/test_policy.py::test_a_block_holds_and_a_hook_that_fails_closes",
)
_SHELL = f"{E2E}::test_the_shell_is_hidden_from_the_model_and_callable_where_policy_allows"
_NO_RECURSION = f"{E2E}::test_a_guest_cannot_call_its_own_controls"
_MODULES = f"{E2E}::test_modules_are_refused"
_AMBIENT = f"{E2E}::test_the_guest_has_no_files_network_or_environment"
_LOOPS = "reports/test_executor.py::test_a_runaway_loop_is_a_timeout_and_the_host_stays_awake"
_MEMORY = "reports/test_executor.py::test_running_out_of_memory_has_a_name"
_SNAPSHOT_CAP = f"{E2E}::test_snapshots_are_capped_when_a_cell_is_parked"
_OUTPUT_CAP = f"{E2E}::test_output_is_capped_when_a_cell_is_parked_and_when_it_is_done"
_OUTLIVES = f"{E2E}::test_a_call_that_outlives_exec_is_delivered_by_wait_and_nothing_is_replayed"
_REFUSED_WAITS = (
    f"{WAITING}::test_wait_is_refused_to_others_and_kept_for_the_owner",
    f"{E2E}::test_time_limits_aborts_and_expiry_leave_no_state",
    f"{RESUME}::test_two_waits_deliver_once",
)
_REPLAY = (
    "reports/test_transcript.py::test_nested_calls_survive_a_reload_under_the_exec_that_made_them"
)
_COUNTERS = "reports/test_transcript.py::test_counters_run_on_over_wait_and_hold_no_values"
_HTTP = "gateway/test_plan.py::test_the_plan_over_http"
_EXPORT = (
    "cli/test_trajectory.py::test_a_bundle_holds_the_session_with_nested_calls_under_their_parent"
)
_REPLAYED = "cli/test_trajectory.py::test_what_was_recorded_replays_the_same"
_CLEAN = f"{E2E}::test_time_limits_aborts_and_expiry_leave_no_state"

CHECKLISTS: dict[str, Line] = {
    "000.1": line("a disabled config leaves the exposure of tools as it was", _OFF),
    "000.2": line("an object without enabled: true leaves code mode off", _ONLY_TRUE),
    "000.3": line("enabled: exec, wait and required direct-only tools alone", *_ON),
    "000.4": line("raw, disableTools and empty allow lists are not enforced", *_NO_TOOLS),
    "000.5": line("every eligible non-MCP tool is in ALL_TOOLS", _BY_ID),
    "000.6": line(
        "direct-only tools stay visible and out of ALL_TOOLS",
        _BY_ID,
        f"{E2E}::test_turning_it_on_changes_only_what_the_model_sees",
    ),
    "000.7": line("denied tools are not in ALL_TOOLS", _DENIED),
    "000.8": line("search, describe, callValue and call work for OpenClaw tools", _BY_ID),
    "000.9": line("API.list and API.read declare MCP without bridge or tool calls", *_FILES),
    "000.10": line("$api() is the inline fallback for schemas", _HEADER),
    "000.11": line("MCP calls take one object; MCP entries are not in tools.*", _BY_ID),
    "000.12": line("tool search controls are neither visible nor cataloged", _NO_TOOL_SEARCH),
    "000.13": line("nested calls keep approvals and hooks", *_CHECKS),
    "000.14": line("shell exec is hidden from the model, callable by id if allowed", _SHELL),
    "000.15": line("guest code cannot call code-mode exec and wait", _NO_RECURSION),
    "000.16": line(
        "TypeScript is transformed and run, and never loaded for JavaScript",
        "codemode/test_typescript.py::test_types_are_stripped_and_never_checked",
        "codemode/test_typescript.py::test_without_a_transformer_typescript_fails_and_javascript_does_not",
    ),
    "000.17": line(
        "import, require, files, network and environment fail",
        _MODULES,
        _AMBIENT,
        f"{ISOLATION}::test_modules_cannot_be_loaded",
    ),
    "000.18": line("an endless loop times out and cannot block the host", _LOOPS),
    "000.19": line("a memory limit error ends the guest", _MEMORY),
    "000.20": line("output and snapshot caps hold for done and parked", _OUTPUT_CAP, _SNAPSHOT_CAP),
    "000.21": line("wait resumes the snapshot and returns the final value", _OUTLIVES),
    "000.22": line("expired, aborted, foreign and unknown runIds fail", *_REFUSED_WAITS),
    "000.23": line("replay and persistence keep the control calls", _REPLAY, _REPLAYED),
    "000.24": line("transcript and telemetry show nested calls", _REPLAY, _COUNTERS),
    "000.n1": line(
        "prompt text only while the backing tools are visible",
        f"{NAMESPACES}::test_the_prompt_is_shown_only_while_the_tools_are_visible",
    ),
    "000.n2": line(
        "a tool of the same name from elsewhere exposes nothing",
        f"{NAMESPACES}::test_tools_of_another_plugin_do_not_open_it",
    ),
    "000.n3": line(
        "raw functions in a scope are refused",
        f"{NAMESPACES}::test_a_scope_that_cannot_cross_fails_the_cell_before_guest_code",
    ),
    "000.n4": line(
        "forged namespace ids and paths are refused",
        f"{NAMESPACES}::test_forged_ids_and_paths_reach_nothing",
    ),
    "000.n5": line(
        "a callable path cannot target an undeclared tool",
        f"{NAMESPACES}::test_a_scope_that_cannot_cross_fails_the_cell_before_guest_code",
    ),
    "000.n6": line(
        "nested objects and shared references serialise",
        f"{NAMESPACES}::test_a_cycle_is_refused_and_a_shared_object_is_not",
    ),
    "000.n7": line(
        "a call runs through the catalog tool, details JSON-safe",
        f"{NAMESPACES}::test_calls_run_through_the_catalog_and_give_json_details",
    ),
    "000.n8": line(
        "failures can be caught by guest code",
        f"{NAMESPACES}::test_a_failure_can_be_caught_with_its_message",
    ),
    "000.n9": line(
        "a suspended namespace call goes on through wait",
        f"{NAMESPACES}::test_a_slow_call_is_parked_and_resumed_in_the_same_scope",
    ),
    "000.n10": line(
        "plugin rollback clears its namespaces",
        f"{NAMESPACES}::test_clearing_a_plugin_takes_only_its_own_away",
        "app/test_bundled.py::test_a_plugin_that_fails_while_it_is_loaded_leaves_no_namespace",
    ),
    "000.e1": line("start the gateway with code mode off", _ON[0], _HTTP),
    "000.e2": line("send a turn with a small set of direct tools", _ON[0], _HTTP),
    "000.e3": line("the visible tools are unchanged", _ON[0], _OFF, _HTTP),
    "000.e4": line("start again with code mode on", _ON[0], _HTTP),
    "000.e5": line("send a turn with OpenClaw, plugin, MCP and client tools", _BY_ID, _HTTP),
    "000.e6": line("exec, wait and the configured direct-only tools alone", *_ON, _HTTP),
    "000.e7": line("ALL_TOOLS has the eligible tools and no direct-only one", _BY_ID, _HTTP),
    "000.e8": line("search, describe, callValue or call for each kind", _BY_ID, _HTTP),
    "000.e9": line("API.list and API.read describe the visible MCP tools", *_FILES, _HTTP),
    "000.e10": line("an MCP tool is called by namespace, absent from tools.*", _BY_ID, _HTTP),
    "000.e11": line("a denied tool is absent and cannot be called by a guessed id", _DENIED, _HTTP),
    "000.e12": line("a nested call settles after exec returned waiting", _OUTLIVES, _HTTP),
    "000.e13": line("wait delivers the result to the restored program", _OUTLIVES, _HTTP),
    "000.e14": line("the answer has output made after the restore", _OUTLIVES, _HTTP),
    "000.e15": line("timeout, abort and expiry clean up the run-time state", _CLEAN, _HTTP),
    "000.e16": line("the exported trajectory shows nested calls", _OUTLIVES, _EXPORT, _HTTP),
    "002.1": line("disabled without an override leaves the exposure as it was", _OFF),
    "002.2": line(
        "enabled omitted stays off unless an agent or model says so",
        _ONLY_TRUE,
        f"{CONFIG}::test_one_agents_setting_is_taken_and_touches_no_other",
    ),
    "002.3": line(
        "per-model true, false, unset; fallbacks; limits of the enclosing options",
        f"{CONFIG}::test_a_models_true_or_false_beats_everything_around_it_and_changes_no_limit",
        "app/test_fallbacks.py::test_a_fallback_resolves_code_mode_on_its_own_row",
    ),
    "002.4": line("enabled: exec, wait and required direct-only tools alone", *_ON),
    "002.5": line(
        "executor omitted: Node; explicit QuickJS: the bundled plugin; none: failure",
        "config/test_tree.py::test_the_executor_depends_on_the_guest_api_when_it_is_omitted",
        "reports/test_executor.py::test_an_engine_that_cannot_be_loaded_is_runtime_unavailable",
        "reports/test_executor.py::test_a_run_whose_engine_is_blocked_is_not_asked_again_with_all_tools",
    ),
    "002.6": line(
        'runtime: "quickjs-wasi" migrates to executor: "quickjs"',
        "config/test_files.py::test_the_legacy_runtime_is_migrated_and_nothing_else_changes",
        "cli/test_commands.py::test_doctor_migrates_the_legacy_runtime",
    ),
    "002.7": line(
        "global and per-agent executors stay pinned through every wait",
        f"{CONFIG}::test_the_executor_is_pinned_for_a_cell_and_the_status_tells_the_same",
    ),
    "002.8": line("raw, disableTools and empty allow lists are not enforced", *_NO_TOOLS),
    "002.9": line(
        "every eligible non-MCP name has one callable winner",
        "reports/test_catalog_naming.py::test_two_names_that_normalise_alike_stay_two_tools",
        "reports/test_catalog_naming.py::test_a_plugin_with_a_core_tools_name_loses_it_and_nothing_else",
    ),
    "002.10": line("direct-only tools stay visible and out of the catalog", *_ON),
    "002.11": line("denied tools have no global and no handle", _DENIED),
    "002.12": line("globals, search, all and describe() without exact ids", _BY_NAME),
    "002.13": line("API.list and API.read declare MCP without bridge or tool calls", *_FILES),
    "002.14": line("$api() is the inline fallback for schemas", _HEADER),
    "002.15": line("handles and namespace share a dispatcher; all() stays native", _AGREE),
    "002.16": line("tool search controls are neither visible nor cataloged", _NO_TOOL_SEARCH),
    "002.17": line("nested calls keep approvals and hooks", *_CHECKS),
    "002.18": line(
        "caught and uncaught failures are survived without replay",
        f"{E2E}::test_failures_are_caught_or_not_and_effects_are_never_replayed",
    ),
    "002.19": line(
        "failures from the network keep their wrapping and cleaning",
        f"{E2E}::test_what_a_server_says_in_a_failure_is_wrapped_for_the_model",
    ),
    "002.20": line("shell exec is hidden from the model, a guest global if allowed", _SHELL),
    "002.21": line("guest code cannot call code-mode exec and wait", _NO_RECURSION),
    "002.22": line(
        "cells are plain JavaScript; typed discovery remains",
        f"{E2E}::test_retired_arguments_and_typescript_fail_before_any_call",
        _FILES[0],
    ),
    "002.23": line(
        "TypeScript syntax, language and typecheck fail before any dispatch",
        f"{E2E}::test_retired_arguments_and_typescript_fail_before_any_call",
    ),
    "002.24": line(
        "no import, require, files, network, environment; QuickJS isolation apart",
        _MODULES,
        _AMBIENT,
        f"{ISOLATION}::test_there_is_nothing_of_a_host",
        "execution/test_quickjs.py::test_the_engine_imports_its_memory_and_the_clock_only",
    ),
    "002.25": line("an endless loop times out and cannot block the host", _LOOPS),
    "002.26": line("an executor's memory fault ends the execution", _MEMORY),
    "002.27": line(
        "output caps on both executors, snapshot caps on QuickJS", _OUTPUT_CAP, _SNAPSHOT_CAP
    ),
    "002.28": line("wait resumes the continuation and returns the final value", _OUTLIVES),
    "002.29": line("expired, aborted, foreign and unknown runIds fail", *_REFUSED_WAITS),
    "002.30": line("replay and persistence keep the control calls", _REPLAY, _REPLAYED),
    "002.31": line("transcript and telemetry show nested calls", _REPLAY, _COUNTERS),
    "002.e1": line("start the gateway with code mode off", _ON[0], _HTTP),
    "002.e2": line("send a turn with a small set of direct tools", _ON[0], _HTTP),
    "002.e3": line("the visible tools are unchanged", _ON[0], _OFF, _HTTP),
    "002.e4": line("start again with code mode on", _ON[0], _HTTP),
    "002.e5": line("send a turn with OpenClaw, plugin, MCP and client tools", _BY_NAME, _HTTP),
    "002.e6": line("exec, wait and the configured direct-only tools alone", *_ON, _HTTP),
    "002.e7": line(
        "safe globals; normalised, reserved and colliding names as in the index",
        "reports/test_catalog_naming.py::test_discovery_prints_names_that_can_be_called",
        "reports/test_bridge.py::test_controls_do_not_exist_inside_a_cell_and_the_index_tells_the_truth",
        _HTTP,
    ),
    "002.e8": line("handles, describe() and calls without seeing an exact id", _BY_NAME, _HTTP),
    "002.e9": line("API.list and API.read describe the visible MCP tools", *_FILES, _HTTP),
    "002.e10": line(
        "search across native and MCP; names, bounds, wrapping; both paths agree",
        _AGREE,
        "reports/test_security.py::test_text_of_remote_servers_stays_out_of_the_prompt",
        _HTTP,
    ),
    "002.e11": line("a denied tool is absent and cannot be called by a guessed id", _DENIED, _HTTP),
    "002.e12": line("a nested call settles after exec returned waiting", _OUTLIVES, _HTTP),
    "002.e13": line("wait delivers the result to the continued program", _OUTLIVES, _HTTP),
    "002.e14": line("the answer has output made after resuming, without replay", _OUTLIVES, _HTTP),
    "002.e15": line("timeout, abort and expiry clean up the run-time state", _CLEAN, _HTTP),
    "002.e16": line("the exported trajectory shows nested calls", _OUTLIVES, _EXPORT, _HTTP),
}
