"""What commands that serve others tell their operator: each thing once."""

import pytest

from toolcell.cli.console import Progress
from toolcell.cli.gateway_command import GatewayLog
from toolcell.cli.opening import Opening, opened
from toolcell.cli.operatorlog import OperatorLog
from toolcell.config.parse import parse_config
from toolcell.gateway.service import ServiceParts, opened_service
from toolcell.protocol.events import ApprovalRequested, Diagnostic
from toolcell.protocol.scope import RunScope

pytestmark = pytest.mark.anyio

SCOPE = RunScope(agent_id="main", session_id="s", session_key="k", run_id="r")


def told(level="warning", subject="recovery", message="it was\x1b[2J cut off"):
    return Diagnostic(at=1.0, level=level, subject=subject, message=message)


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


async def test_mcp_serve_writes_a_diagnostic_once(capfd):
    async with opened(parse_config({}), Opening(log=OperatorLog()), Progress()) as open_:
        capfd.readouterr()
        open_.runtime.sink.emit(told())
        open_.runtime.sink.emit(told("info"))
        for _ in range(3):  # true of every run that has this catalog
            open_.runtime.sink.emit(told(subject="catalog", message="a tool was renamed"))
    assert capfd.readouterr().err.splitlines() == [
        "toolcell: warning: recovery: it was [2J cut off",
        "toolcell: warning: catalog: a tool was renamed",
    ]


async def test_the_gateway_writes_a_diagnostic_once_and_how_to_answer_a_question(capfd):
    async with opened_service(parse_config({}), ServiceParts(log=GatewayLog())) as service:
        capfd.readouterr()
        service.runtime.sink.emit(told("error"))
        service.runtime.sink.emit(
            ApprovalRequested(
                scope=SCOPE, at=1.0, approval_id="a1", call_id="c1", tool_id="t", reason="costly"
            )
        )
        said = capfd.readouterr().err.splitlines()
    error, question = said
    assert error == "toolcell: error: recovery: it was [2J cut off"
    assert question.startswith("toolcell: t of agent main waits for a person (costly): ")
    assert question.endswith("toolcell approvals approve a1, or deny")
