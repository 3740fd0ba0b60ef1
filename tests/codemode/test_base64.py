"""What browsers and Node have beyond the language, the same on both executors."""

import base64

import pytest

from tests.codemode.support import EXECUTORS, bench_on, run, value_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=EXECUTORS)
async def runtime(request):
    async with bench_on(request.param) as made:
        yield made.runtime(executor=request.param)


async def test_base64_is_written_and_read(runtime):
    every = bytes(range(256))
    samples = [b"", b"f", b"fo", b"foo", b"foob", every, every[:-1], every[:-2]]
    written = [base64.b64encode(each).decode() for each in samples]
    code = """
      const all = Array.from({length: 256}, (_, i) => String.fromCharCode(i)).join("");
      const texts = ["", "f", "fo", "foo", "foob", all, all.slice(0, -1), all.slice(0, -2)];
      const coded = texts.map((each) => btoa(each));
      return [coded, coded.every((each, i) => atob(each) === texts[i]),
              atob(" Zm9v\\n Yg \\t"), atob("Zg=="), btoa(12), btoa(null)]
    """
    said = await value_of(runtime, code)
    assert said == [written, True, "foob", "f", "MTI=", "bnVsbA=="]


@pytest.mark.parametrize(
    "code", ["atob('Zg=')", "atob('Z')", "atob('Zg===')", "atob('Z=g=')", "atob('é')", "btoa('€')"]
)
async def test_what_is_no_base64_is_refused(runtime, code):
    caught = f"try {{ {code}; return null }} catch (e) {{ return e.name }}"
    assert await value_of(runtime, caught) == "InvalidCharacterError"


async def test_a_microtask_runs_before_the_next_task_and_its_error_is_not_lost(runtime):
    code = """
      const seen = [];
      setTimeout(() => seen.push("task"), 0);
      queueMicrotask(() => seen.push("micro"));
      seen.push("now");
      await new Promise((done) => setTimeout(done, 20));
      return seen
    """
    assert await value_of(runtime, code) == ["now", "micro", "task"]
    failed = await run(runtime, "queueMicrotask(() => { throw new Error('lost') }); return 1")
    assert (failed.status, "lost" in failed.error) == ("failed", True)
    refused = "try { queueMicrotask(1) } catch (e) { return e.name }"
    assert await value_of(runtime, refused) == "TypeError"
