"""A session is exported as a bundle, and its cells are replayed from it."""

import json
import shutil
import zipfile
from pathlib import Path

import anyio
import pytest

from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.base.masking import Masker
from toolcell.cli.main import run
from toolcell.config.load import load_config
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.sessions.store import SessionStore
from toolcell.sessions.trajectory import trajectory

CANARY = "S3CR3T-CANARY-0001"
OTHER = "sk-othercanaryabcdefgh"
NAMED = "named-canary-77"
EVERY_CANARY = (CANARY, OTHER, NAMED)

CELL = """
const found = await catalog.search("read a page");
text(`found ${found.length > 0}`);
const pages = await Promise.all([page({n: 1}), page({n: 2}), page({n: 3})]);
const timer = setTimeout(() => {}, 60000);
clearTimeout(timer);
let refused = "";
try { await page({n: 99}); } catch (error) { refused = error.message; }
await yield_control("pause");
json({big: (await page({n: 4})).text.startsWith("xxx")});
return {pages: pages.map((each) => each.n), refused, token: pages[0].token};
"""


def page(n: int) -> dict:
    """Read a page."""
    if n == 99:
        message = f"no page {n} for {CANARY}"
        raise ValueError(message)
    return {"n": n, "token": NAMED, "text": "x" * (40_000 if n == 4 else 10) + f" {CANARY} {OTHER}"}


def part(n: int) -> dict:
    """Read a part of a page."""
    return {"text": f"part {n}", "truncated": True}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    config = {
        "models": {"providers": {"demo": {"baseUrl": "http://127.0.0.1:9", "apiKey": CANARY}}},
        "agents": {"defaults": {"model": "demo/m", "systemPrompt": f"Never say {CANARY}."}},
        "tools": {"codeMode": {"enabled": True, "executor": "quickjs"}},
    }
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "toolcell.json").write_text(json.dumps(config))
    return tmp_path


def recorded(steps, *, session="s1", prompt=f"Use {CANARY}, {OTHER} and password = '{NAMED}'"):
    """Run one turn with real cells into the session database."""

    async def go():
        async with SessionStore(Path("home") / "sessions.db") as store:
            parts = Parts(tools=[page, part], sinks=(store,), load_plugins=False)
            runtime = Runtime(load_config(), parts, Host())
            runtime.providers.add("demo", ScriptedProvider(steps))
            await runtime.start()
            scope = runtime.scope(session_id=session)
            with anyio.fail_after(40):
                result = await converse(runtime, store, Turn(scope=scope, prompt=prompt))
            await runtime.aclose()
            return result

    return anyio.run(go)


def waiting(request):
    answer = json.loads(request.messages[-1].text.split("\n")[0])
    return tool_call("wait", {"runId": answer["runId"]}, id="c2")


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def everything(folder):
    return {
        f.relative_to(folder).as_posix(): f.read_text() for f in folder.rglob("*") if f.is_file()
    }


@pytest.fixture
def bundle(home, capsys):
    result = recorded([tool_call("exec", {"code": CELL}, id="c1"), waiting, f"Done: {CANARY}"])
    assert result.status == "completed", result.error
    assert run(["sessions", "export-trajectory", "s1", "--out", "bundle"]) == 0
    capsys.readouterr()
    return home / "bundle"


def test_a_bundle_holds_the_session_with_nested_calls_under_their_parent(bundle):
    """rule 8.3, BEHAVIOURS 357: manifest, events, prompts, tools, transcript, artifacts."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert (manifest["format"], manifest["session"]["sessionId"]) == ("toolcell-trajectory", "s1")
    files = everything(bundle)
    assert {f["name"] for f in manifest["files"]} == set(files) - {"manifest.json"}
    exec_call, wait_call = lines(bundle, "calls.jsonl")
    assert [child["toolName"] for child in exec_call["children"]] == ["page"] * 5
    assert {child["parentToolCallId"] for child in exec_call["children"]} == {"c1"}
    assert wait_call["callId"] == "c2"
    assert "children" not in wait_call
    (prompt,) = lines(bundle, "prompts.jsonl")
    assert prompt["prompt"]["role"] == "user"
    assert prompt["system"].startswith("Never say")
    (shown,) = prompt["tools"]
    assert [tool["name"] for tool in json.loads((bundle / shown).read_text())] == ["exec", "wait"]
    kinds = [event["type"] for event in lines(bundle, "events.jsonl")]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_ended"
    activity = [e for e in lines(bundle, "transcript.jsonl") if e["type"] == "activity"]
    assert len(activity) == 5


def test_a_large_result_is_an_artifact_kept_once(bundle):
    (large,) = [c for c in lines(bundle, "calls.jsonl")[0]["children"] if c["arguments"]["n"] == 4]
    text = (bundle / large["result"]["artifact"]).read_text()
    assert len(text) == large["result"]["bytes"] > 40_000
    ended = [e for e in lines(bundle, "events.jsonl") if e["type"] == "call_ended"]
    assert large["result"] in [e.get("result") for e in ended]


@pytest.mark.usefixtures("home")
def test_a_list_that_is_too_long_is_cut_and_counted():
    recorded([tool_call("exec", {"code": "return 1"}), "ok"])

    async def read():
        async with SessionStore(Path("home") / "sessions.db") as store:
            return await store.trace("s1")

    made = trajectory(anyio.run(read), Masker(), at=0.0, max_file_bytes=600)
    manifest = json.loads(made.files["manifest.json"])
    assert manifest["omitted"]["events.jsonl"] > 0
    assert all(len(data) <= 600 for name, data in made.files.items() if name == "events.jsonl")


def test_no_canary_is_anywhere_in_a_bundle(bundle):
    """SE-08, rule 8.4: by value, by shape and by name; in texts, results, code and errors."""
    for name, text in everything(bundle).items():
        for canary in EVERY_CANARY:
            assert canary not in text, name
    assert "[redacted]" in (bundle / "events.jsonl").read_text()


def test_what_was_recorded_replays_the_same(bundle, capsys):
    """Calls, searches, timers, refusals and a yield come back in the order they came then."""
    assert run(["replay", "bundle"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("same ")
    assert run(["replay", "bundle", "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["status"], cell["steps"]) == (
        "same",
        len(lines(bundle, "cells.jsonl")[0]["steps"]),
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("page({n: 2})", "page({n: 7})", "asked"),
        ("text(`found", "text(`there", "output"),
        ("refused, token", "token", "ended"),
        ('yield_control("pause")', 'yield_control("rest")', "asked"),
    ],
)
def test_a_program_that_does_something_else_differs(bundle, capsys, old, new, says):
    file = bundle / "cells.jsonl"
    (cell,) = lines(bundle, "cells.jsonl")
    assert old in cell["code"]
    cell["code"] = cell["code"].replace(old, new)
    file.write_text(json.dumps(cell))
    assert run(["replay", "bundle"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("differs ")
    assert says in out
    assert "on record" in out


def test_a_cell_that_failed_replays_to_the_same_failure(home, capsys):
    """A fault from the field is seen again offline."""
    code = "const a = await page({n: 1}); return a.nothing.here"
    recorded([tool_call("exec", {"code": code}), "sorry"])
    assert run(["sessions", "export-trajectory", "s1", "--out", "b.zip"]) == 0
    with zipfile.ZipFile(home / "b.zip") as archive:
        cell = json.loads(archive.read("cells.jsonl"))
    assert cell["steps"][-1]["end"]["name"] == "TypeError"
    assert cell["ended"]["status"] == "failed"
    assert run(["replay", "b.zip"]) == 0
    assert "same" in capsys.readouterr().out


def test_a_cell_that_was_cut_is_skipped_with_the_reason(bundle, capsys):
    (cell,) = lines(bundle, "cells.jsonl")
    cell["steps"][1]["answers"][0] = {"truncated": True, "prefix": {}}
    (bundle / "cells.jsonl").write_text(json.dumps(cell))
    assert run(["replay", "bundle"]) == 0
    assert "skipped" in (out := capsys.readouterr().out)
    assert "cut when it was recorded" in out


@pytest.mark.usefixtures("home")
def test_a_result_that_says_truncated_is_no_gap_of_the_record(capsys):
    """`read`, `grep` and others say so of themselves; what the record lacks is another matter."""
    code = "const a = await part({n: 1}); json(a); return [a, await part({n: 2})]"
    recorded([tool_call("exec", {"code": code}), "ok"])
    assert run(["sessions", "export-trajectory", "s1", "--out", "b.zip"]) == 0
    assert run(["replay", "b.zip"]) == 0
    assert "same" in capsys.readouterr().out


def test_a_cell_whose_beginning_was_lost_in_a_crash_is_skipped(bundle, capsys):
    """kill -9 loses what was not committed; that is no cut."""
    (cell,) = lines(bundle, "cells.jsonl")
    cell |= {"steps": [], "start": None}
    (bundle / "cells.jsonl").write_text(json.dumps(cell))
    assert run(["replay", "bundle"]) == 0
    assert "its beginning is not on record" in capsys.readouterr().out


def test_a_cell_whose_image_is_gone_is_skipped(bundle, capsys):
    shutil.rmtree(bundle / "artifacts")
    assert run(["replay", "bundle"]) == 0
    assert "skipped" in capsys.readouterr().out


@pytest.mark.usefixtures("bundle")
def test_a_missing_session_and_a_target_in_the_way_are_told(capsys):
    assert run(["sessions", "export-trajectory", "nope"]) == 1
    assert "no session 'nope'" in capsys.readouterr().err
    assert run(["sessions", "export-trajectory", "s1", "--out", "bundle"]) == 1
    assert "exists already" in capsys.readouterr().err


@pytest.mark.usefixtures("bundle")
def test_a_bundle_without_out_is_a_zip_in_this_folder(capsys):
    assert run(["sessions", "export-trajectory", "s1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == "trajectory-s1.zip"
    assert run(["replay", "trajectory-s1.zip", "--cell", "nope"]) == 2
    assert "no cell 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (None, "cannot read 'manifest.json'"),
        ("{nope", "no JSON"),
        ('{"format": "x"}', "no trajectory bundle"),
        ('{"format": "toolcell-trajectory", "version": 99}', "update toolcell"),
    ],
)
def test_what_is_no_bundle_is_refused(home, capsys, manifest, says):
    (home / "b").mkdir()
    if manifest is not None:
        (home / "b" / "manifest.json").write_text(manifest)
    assert run(["replay", "b"]) == 1
    assert says in capsys.readouterr().err


def test_a_bundle_of_a_stranger_can_name_no_other_file(bundle, capsys):
    """SE-08: names in a bundle never become paths, and its program runs in the sandbox."""
    (cell,) = lines(bundle, "cells.jsonl")
    image = next((bundle / "artifacts").glob("*.image"))
    image.write_text("../../../etc/passwd controller\n{}")
    cell["image"] = "../../../../etc/passwd"
    (bundle / "cells.jsonl").write_text(json.dumps(cell))
    assert run(["replay", "bundle"]) == 0
    assert "skipped" in capsys.readouterr().out
