"""OpenTelemetry spans of a whole run, collected in memory."""

import json
import subprocess
import sys

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.app.tracing import Tracing
from toolcell.base.masking import Masker
from toolcell.config.parse import parse_config
from toolcell.library.code_mode import CodeMode
from toolcell.protocol.events import CallStarted, ModelCalled, RunEnded
from toolcell.protocol.messages import Usage
from toolcell.protocol.scope import RunScope
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.sessions.memory import MemorySessions

pytestmark = pytest.mark.anyio

CANARY = "S3CR3T-CANARY-0001"
CODE = (
    "const a = await page({n: 1}); await yield_control();"
    "try { await page({n: 99}) } catch (error) {} return a"
)


def page(n: int) -> str:
    """Read a page."""
    if n == 99:
        message = f"no page for {CANARY}"
        raise ValueError(message)
    return f"page {n} {CANARY}"


@pytest.fixture
def collected():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter, provider
    provider.shutdown()


def waiting(request):
    return tool_call("wait", {"runId": json.loads(request.messages[-1].text)["runId"]}, id="c2")


async def turn(provider, *, content=False):
    config = parse_config(
        {
            "agents": {"defaults": {"model": "demo/m"}},
            "tools": {"codeMode": {"enabled": True, "executor": "quickjs"}},
        }
    )
    tracer = provider.get_tracer("toolcell")
    sink = Tracing(tracer, Masker([CANARY]) if content else None)
    runtime = Runtime(config, Parts(tools=[page], load_plugins=False, sinks=(sink,)), Host())
    steps = [tool_call("exec", {"code": CODE}, id="c1"), waiting, "done"]
    runtime.providers.add("demo", ScriptedProvider(steps))
    await runtime.start()
    scope = runtime.scope(session_id="s1")
    with tracer.start_as_current_span("caller"), anyio.fail_after(30):
        result = await converse(runtime, MemorySessions(), Turn(scope=scope, prompt="go"))
    await runtime.aclose()
    assert result.status == "completed", result.error


def tree(spans):
    """Return `parent > child` lines in the order the children began."""
    names = {span.context.span_id: span.name for span in spans}
    began = sorted(spans, key=lambda span: span.start_time)
    return [f"{names[s.parent.span_id]} > {s.name}" for s in began if s.parent is not None]


async def test_spans_stand_under_one_another_as_the_work_did(collected):
    """rule 8.3, rule 8.4: run, model call, cell and nested call."""
    exporter, provider = collected
    await turn(provider)
    spans = exporter.get_finished_spans()
    assert sorted(tree(spans)) == sorted(
        [
            "caller > invoke_agent main",
            *["invoke_agent main > chat m"] * 3,
            "invoke_agent main > execute_tool exec",
            "invoke_agent main > execute_tool wait",
            "execute_tool exec > toolcell.cell",
            *["toolcell.cell > execute_tool page"] * 2,
        ]
    )
    assert all(span.end_time >= span.start_time for span in spans)


async def test_attributes_follow_the_genai_conventions(collected):
    exporter, provider = collected
    await turn(provider)
    spans = exporter.get_finished_spans()
    chat = next(span for span in spans if span.name == "chat m")
    assert chat.kind is trace.SpanKind.CLIENT
    told = dict(chat.attributes)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "demo"
    assert told["gen_ai.conversation.id"] == "s1"
    assert told["toolcell.request.tools"] == ("exec", "wait")
    good, bad = [span for span in spans if span.name == "execute_tool page"]
    assert good.attributes["toolcell.tool.id"] == "openclaw:core:page"
    assert good.attributes["gen_ai.tool.call.id"] != bad.attributes["gen_ai.tool.call.id"]
    assert bad.status.status_code is trace.StatusCode.ERROR
    assert bad.attributes["error.type"] == "tool_error"
    cell = next(span for span in spans if span.name == "toolcell.cell")
    assert [event.name for event in cell.events] == ["toolcell.cell.parked"]
    assert cell.attributes["toolcell.cell.executor"] == "quickjs"


async def test_a_known_cost_is_told(collected):
    exporter, provider = collected
    sink = Tracing(provider.get_tracer("toolcell"))
    where = RunScope(agent_id="main", session_id="s", session_key="k", run_id="r")
    for cost in (0.25, None):
        sink.emit(
            ModelCalled(
                scope=where,
                at=1.0,
                model="m",
                tool_names=(),
                request_bytes=1,
                duration_ms=1.0,
                usage=Usage(cost=cost),
            )
        )
    first, second = exporter.get_finished_spans()
    assert first.attributes["toolcell.usage.cost_usd"] == 0.25
    assert "toolcell.usage.cost_usd" not in second.attributes


async def test_no_content_is_in_a_span_unless_it_is_asked_for(collected):
    """rule 8.4, SE-08: no inputs, results, code or error texts."""
    exporter, provider = collected
    await turn(provider)
    text = "".join(span.to_json() for span in exporter.get_finished_spans())
    for content in (CANARY, "yield_control", "page 1", "no page for"):
        assert content not in text


async def test_content_that_is_asked_for_is_masked(collected):
    """SE-08"""
    exporter, provider = collected
    await turn(provider, content=True)
    text = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "yield_control" in text
    assert "page 1 [redacted]" in text
    assert "no page for [redacted]" in text
    assert CANARY not in text


async def test_what_a_run_leaves_open_ends_with_it(collected):
    exporter, provider = collected
    sink = Tracing(provider.get_tracer("toolcell"))
    where = RunScope(agent_id="main", session_id="s", session_key="k", run_id="r")
    sink.emit(
        CallStarted(
            scope=where,
            at=1.0,
            call_id="c",
            parent_id="unknown",
            tool_id="openclaw:core:x",
            tool_name="x",
            source="openclaw",
            arguments={},
            started=1,
        )
    )
    sink.emit(RunEnded(scope=where, at=2.0, status="aborted"))
    (span,) = exporter.get_finished_spans()
    assert span.attributes["error.type"] == "interrupted"
    assert (span.start_time, span.end_time) == (1_000_000_000, 2_000_000_000)


@pytest.mark.parametrize("asked", [None, "false", "true"])
async def test_a_configured_provider_is_found(collected, monkeypatch, asked):
    """rule 8.4: content is told only when OpenTelemetry's own variable asks for it."""
    exporter, provider = collected
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    monkeypatch.delenv(name, raising=False)
    if asked is not None:
        monkeypatch.setenv(name, asked)
    async with CodeMode(tools=[page], executor="quickjs") as cm:
        assert (await cm.exec("return page({n: 1})")).status == "completed"
    spans = exporter.get_finished_spans()
    assert "execute_tool exec" in {span.name for span in spans}
    text = "".join(span.to_json() for span in spans)
    assert ("page({n: 1})" in text) is (asked == "true")


async def test_without_a_provider_opentelemetry_is_not_even_imported():
    program = (
        "import sys, toolcell; cm = toolcell.CodeMode(tools=[], executor='quickjs');"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    told = await anyio.run_process([sys.executable, "-c", program], stderr=subprocess.STDOUT)
    assert told.stdout.decode().strip() == "[]"
