"""What a program returns and emits: the value adapter, Unicode, output order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.execution.conformance.harness import run, suspend
from toolcell.execution.contract import Answer, Executor, Faulted, Finished, Limits

pytestmark = pytest.mark.anyio

UNAWAITED = (
    "[Unawaited Promise: use await or Promise.all(...) before emitting or returning values.]"
)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("return 1 + 1", 2),
        ("return 'text'", "text"),
        (
            "return {a: [1, null, true, 'x'], b: {c: -0.5}}",
            {"a": [1, None, True, "x"], "b": {"c": -0.5}},
        ),
        ("", None),
        ("return undefined", None),
        ("return () => 1", None),
        ("return {keep: 1, drop: () => 1, gone: undefined}", {"keep": 1}),
        ("return [undefined, () => 1]", [None, None]),
        ("return NaN", None),
        ("return 12n", "12"),
        ("return {n: 12n}", {"n": "12"}),
        ("const o = {}; o.o = o; return o", "[object Object]"),
        ("const a = []; a.push(a); return a", "[object Array]"),
        ("const s = {v: 1}; return [s, s]", [{"v": 1}, {"v": 1}]),
        ("return new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("return new Uint8Array(2)", "[object Uint8Array]"),
        ("return {toJSON() { return 'own' }}", "own"),
        ("return {then: 5}", {"then": 5}),
        ("return await 7", 7),
        ("return Promise.resolve(8)", 8),
    ],
)
async def test_a_returned_value_becomes_json(executor: Executor, source: str, value: Any) -> None:
    """BEHAVIOURS 119, rule 3.4: undefined is null, functions are dropped, cycles are named."""
    assert (await run(executor, source)).value == value


async def test_a_returned_error_keeps_its_name_message_and_own_fields(executor: Executor) -> None:
    """BEHAVIOURS 120."""
    source = "return [Object.assign(new TypeError('bad'), {code: 'E1'})]"
    assert (await run(executor, source)).value == [
        {"name": "TypeError", "message": "bad", "code": "E1"}
    ]


async def test_promises_that_were_not_awaited_become_a_sentence(executor: Executor) -> None:
    """EX-08, BEHAVIOURS 121: the program does not wait for one that never settles."""
    ran = await run(
        executor, "return [call('echo', {v: 1}), {p: new Promise(() => {})}, {then: 5}]"
    )
    assert ran.value == [UNAWAITED, {"p": UNAWAITED}, {"then": 5}]
    emitted = await run(executor, "text(Promise.resolve(1)); json([Promise.resolve(1)])")
    assert emitted.texts == [UNAWAITED, json.dumps([UNAWAITED])]


async def test_text_and_json_come_in_call_order(executor: Executor) -> None:
    """rule 3.11, BEHAVIOURS 115."""
    ran = await run(executor, "text('a'); json({b: 1}); text('c'); return 3")
    assert [(frame.type, frame.text) for frame in ran.output] == [
        ("text", "a"),
        ("json", '{"b":1}'),
        ("text", "c"),
    ]
    assert ran.value == 3


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("json(undefined)", "null"),
        ("text(undefined)", "null"),
        ("json(12n)", '"12"'),
        ("text(12n)", "12"),
        ("text({a: 1})", '{"a":1}'),
        ("const o = {}; o.o = o; text(o)", "[object Object]"),
    ],
)
async def test_output_of_values_json_has_no_word_for(
    executor: Executor, source: str, text: str
) -> None:
    """BEHAVIOURS 116."""
    assert (await run(executor, source)).texts == [text]


async def test_an_emitted_object_is_a_copy(executor: Executor) -> None:
    """BEHAVIOURS 117."""
    assert (await run(executor, "const o = {a: 1}; json(o); o.a = 2")).texts == ['{"a":1}']


async def test_output_is_kept_when_the_program_throws(executor: Executor) -> None:
    """BEHAVIOURS 118, rule 3.11."""
    ran = await run(executor, "text('before'); throw new Error('boom')")
    assert ran.texts == ["before"]
    assert (ran.fault.error.name, ran.fault.error.message) == ("Error", "boom")


async def test_handles_of_an_extension_serialise_as_it_says(executor: Executor) -> None:
    """rule 4.8: a handle is callable and serialises to its metadata, wherever it stands."""
    ran = await run(executor, "text(handle); return [handle, {h: handle}, await handle(4)]")
    plain = {"callableName": "handle"}
    assert ran.texts == [json.dumps(plain, separators=(",", ":"))]
    assert ran.value == [plain, {"h": plain}, 4]


async def test_image_data_and_run_values_reach_the_extension(executor: Executor) -> None:
    """rule 9.1: what is the same for all cells is in the image, the rest comes with the start."""
    ran = await run(executor, "return [fromData, fromStart]")
    assert ran.value == [{"greeting": "hello"}, {"run": 1}]


@pytest.mark.parametrize("text", ["ключ ✓ 😀", "\x00\x01\u2028\u2029", "\ud83d alone \udc00"])
async def test_any_unicode_survives_both_ways(executor: Executor, text: str) -> None:
    """BEHAVIOURS 134: lone surrogates included."""
    quoted = json.dumps(text)
    ran = await run(executor, f"const t = {quoted}; text(t); return [t, await call('echo', t)]")
    assert ran.texts == [text]
    assert ran.value == [text, text]


async def test_source_text_may_hold_any_character(executor: Executor) -> None:
    """rule 3.1: a literal, not an escape."""
    assert (await run(executor, "const ключ = '😀é'; return ключ")).value == "😀é"


async def test_deep_values_end_as_an_error_not_a_crash(executor: Executor) -> None:
    """rule 9.4."""
    ran = await run(executor, "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a")
    assert ran.fault.kind == "error"
    parsed = await run(executor, "return JSON.parse('['.repeat(1e6))")
    assert parsed.fault.kind == "error"
    assert (await run(executor, "return 1")).value == 1


async def test_a_deep_reply_does_not_harm_the_host(executor: Executor) -> None:
    """rule 9.4: replies are hostile too; the worst they can do is end their own program."""
    step = await suspend(executor, "const v = await call('echo'); return 'got it'")
    deep = "[" * 200_000 + "]" * 200_000
    end = await step.continuation.resume([Answer(1, deep)], 5)
    assert isinstance(end, Finished | Faulted)
    assert (await run(executor, "return 1")).value == 1


async def test_a_value_over_the_frame_budget_is_a_fault_with_its_own_kind(
    executor: Executor,
) -> None:
    """rule 8.5: excess is never a silent cut."""
    limits = Limits(frame_bytes=64 << 10)
    ran = await run(executor, "text('kept'); return 'x'.repeat(1e6)", limits=limits)
    assert ran.fault.kind == "frames"
    assert ran.texts == ["kept"]


async def test_output_over_the_frame_budget_can_be_caught(executor: Executor) -> None:
    """rule 8.5: excess is a catchable guest error."""
    source = (
        "const seen = []; for (const f of [() => text('x'.repeat(1e6)), "
        "() => call('echo', 'x'.repeat(1e6))]) "
        "{ try { await f() } catch (e) { seen.push(e.name) } }"
        "return seen"
    )
    ran = await run(executor, source, limits=Limits(frame_bytes=64 << 10))
    assert ran.value == ["RangeError", "RangeError"]


async def test_the_guest_zone_is_utc(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """EX-12."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    ran = await run(
        executor, "return [new Date(0).getTimezoneOffset(), new Date(2026, 0, 1).toISOString()]"
    )
    assert ran.value == [0, "2026-01-01T00:00:00.000Z"]


async def test_random_numbers_differ_between_programs(executor: Executor) -> None:
    """rule 2.5: cells start from one image but not from one seed."""
    seen = {(await run(executor, "return Math.random()")).value for _ in range(8)}
    assert len(seen) == 8


@pytest.mark.parametrize("piece", ["x", "\u00e9", "\u4e2d", "\U0001f600", "\ud800", "a\udc00\n"])
async def test_large_texts_of_every_width_cross_whole(executor: Executor, piece: str) -> None:
    """BEHAVIOURS 184: what a program sends, prints and returns is what it has, however large."""
    source = f"""const piece = {json.dumps(piece)};
        const big = piece.repeat(30000);
        const back = await call("echo", big, 1, big + "!", big, big, big, big, big, big);
        text(back === big);
        return [big, 1]"""
    ran = await run(executor, source)
    sent = json.loads(ran.requests[0].args)
    assert sent == [piece * 30000, 1, piece * 30000 + "!", *[piece * 30000] * 6]
    assert ran.texts == ["true"]
    assert ran.value == [piece * 30000, 1]
