"""Owns `/api`: runs, sessions, events, approvals, tools, health, metrics.

Above: `app`. Below: `service`, `bodies`, `event_feed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import Response

from toolcell.app.conversation import Turn
from toolcell.base.version import VERSION
from toolcell.config.resolve import agent_setting
from toolcell.errors import SessionError
from toolcell.gateway.agents import agent_ids, agent_of
from toolcell.gateway.api_models import ApprovalBody, CompactBody, RunBody, run_shown
from toolcell.gateway.bodies import (
    json_answer,
    query_number,
    read_model,
    read_optional,
    session_id,
)
from toolcell.gateway.content_parts import images_of
from toolcell.gateway.event_feed import EventFeed, feed_of
from toolcell.gateway.faults import ApiError, api_error, invalid, not_found
from toolcell.gateway.live import LiveRun
from toolcell.gateway.openapi import openapi_document
from toolcell.gateway.service import Service
from toolcell.gateway.streaming import EventStream, while_connected
from toolcell.protocol.messages import Message

MAX_WAIT_SECONDS: Final = 60
MAX_LISTED: Final = 1000
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


class RunRoutes:
    """`/api/runs`, `/api/events`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limit = service.config.gateway.limits.max_request_bytes

    async def start_run(self, request: Request) -> Response:
        """Start a run in the background."""
        body = await read_model(request, RunBody, limit=self._limit)
        agent = agent_of(self._service.config, body.agent)
        session = session_id(body.session, param="session")
        scope = self._service.runtime.scope(
            session_id=session, agent_id=agent, channel="http", sender=body.sender
        )
        history = () if session is None else None
        turn = Turn(
            scope=scope,
            prompt=body.prompt,
            model=body.model,
            history=history,
            images=images_of(body.images or (), param="images", at=len(body.prompt)),
        )
        live = await self._service.runs.start(turn, listening=False)
        where = {"location": f"/api/runs/{live.run_id}"}
        return json_answer(self._shown(live), 202, where)

    async def list_runs(self, request: Request) -> Response:
        """List runs: those that go on, then the latest that are over."""
        limit = query_number(request, "limit", 100, most=MAX_LISTED)
        return json_answer({"runs": [self._shown(r) for r in self._service.runs.listed(limit)]})

    async def get_run(self, request: Request) -> Response:
        """Show a run; `wait` seconds for its end."""
        live = self._service.runs.find(request.path_params["id"])
        seconds = query_number(request, "wait", 0, most=MAX_WAIT_SECONDS)

        async def waited() -> None:
            with anyio.move_on_after(seconds):
                await live.ended()

        if seconds and not live.over:
            await while_connected(request.receive, waited, on_gone=_nothing)
        return json_answer(self._shown(live))

    async def cancel_run(self, request: Request) -> Response:
        """Cancel a run and wait for its end."""
        live = self._service.runs.find(request.path_params["id"])
        self._service.runs.cancel(live)
        with anyio.move_on_after(MAX_WAIT_SECONDS):
            await live.ended()
        return json_answer(self._shown(live))

    async def events(self, request: Request) -> Response:
        """Stream the events of a session or a run."""
        query = request.query_params
        resume = request.headers.get("last-event-id")
        if resume is not None and not (resume.isascii() and resume.isdigit()):
            raise invalid("last-event-id is the number of an event", param="last-event-id")
        after = int(resume[:18]) if resume else query_number(request, "after", 0, most=10**18)
        if query.get("run") is not None:
            scope = self._service.runs.find(query["run"]).scope
            feed = EventFeed(scope.session_id, after, run_id=scope.run_id)
        else:
            session = session_id(query.get("session"), param="session")
            if session is None:
                raise invalid("name a session or a run", param="session")
            feed = EventFeed(session, after)
        return EventStream(lambda: feed_of(self._service, feed))

    def _shown(self, live: LiveRun) -> dict[str, Any]:
        error = None if live.error is None else api_error(live.error).message
        shown = run_shown(live, error=error)
        masked: dict[str, Any] = self._service.redactor.value(shown)
        return masked


class SessionRoutes:
    """`/api/sessions`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sessions = service.sessions
        self._limit = service.config.gateway.limits.max_request_bytes

    async def list_sessions(self, request: Request) -> Response:
        """List sessions, the last used first."""
        limit = query_number(request, "limit", 100, most=MAX_LISTED)
        found = await self._sessions.list_sessions(limit=limit)
        return json_answer({"sessions": [info.to_dict() for info in found]})

    async def get_session(self, request: Request) -> Response:
        """Show a session: its transcript, and calls under their parents."""
        return json_answer(await self._session(request))

    async def delete_session(self, request: Request) -> Response:
        """Forget a session, its children and what they came to."""
        session = session_id(request.path_params["id"], param="id") or ""
        gone = await self._service.runs.whole.delete(session)
        self._service.approvals.forget(gone)
        self._service.responses.forget(gone)
        return json_answer({"id": session, "deleted": list(gone)})

    async def compact_session(self, request: Request) -> Response:
        """Put a summary in the place of a session's older messages."""
        body = await read_optional(request, CompactBody, limit=self._limit)
        session = session_id(request.path_params["id"], param="id") or ""
        with anyio.CancelScope() as scope:
            done = await while_connected(
                request.receive,
                lambda: self._service.runs.whole.compact(session, body.model),
                on_gone=scope.cancel,
            )
            return json_answer({"id": session, "compacted": done})
        raise ApiError(499, "the client went away", "client_gone")

    async def list_messages(self, request: Request) -> Response:
        """Show the conversation of a session as its model sees it."""
        session = session_id(request.path_params["id"], param="id")
        messages = await self._sessions.history(session or "")
        if not messages and await self._sessions.info(session or "") is None:
            raise _no_session()
        return json_answer({"messages": [_message(each) for each in messages]})

    async def _session(self, request: Request) -> Mapping[str, Any]:
        session = session_id(request.path_params["id"], param="id")
        try:
            return await self._sessions.show(session or "")
        except SessionError as error:
            if await self._sessions.info(session or "") is not None:
                raise
            raise _no_session() from error


class ApprovalRoutes:
    """`/api/approvals`."""

    def __init__(self, service: Service) -> None:
        self._approvals = service.approvals
        self._limit = service.config.gateway.limits.max_request_bytes

    async def list_approvals(self, _request: Request) -> Response:
        """List the open questions, the oldest first."""
        return json_answer({"approvals": self._approvals.pending()})

    async def get_approval(self, request: Request) -> Response:
        """Show one open question."""
        return json_answer(self._approvals.show(request.path_params["id"]))

    async def answer_approval(self, request: Request) -> Response:
        """Answer one question, once."""
        body = await read_model(request, ApprovalBody, limit=self._limit)
        approval_id, approved = request.path_params["id"], body.decision == "approve"
        self._approvals.answer(approval_id, approved=approved, reach=body.reach, reason=body.reason)
        return json_answer({"id": approval_id, "approved": approved, "reach": body.reach})


class StateRoutes:
    """`/api/tools`, health, metrics, the OpenAPI document."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._document = openapi_document()

    async def list_tools(self, request: Request) -> Response:
        """List the tools of an agent, after policy."""
        agent = agent_of(self._service.config, request.query_params.get("agent"))
        runtime = self._service.runtime
        model = agent_setting(self._service.config, agent, "model")
        run = runtime.run(runtime.scope(agent_id=agent, channel="http"), model=model)
        try:
            surface = await run.ready()
            document = {
                "agentId": agent,
                "mode": surface.activation.mode,
                "visible": sorted(surface.plan.allowed_names),
                "tools": [entry.compact() for entry in surface.catalog.entries()],
            }
        finally:
            await runtime.end(run)
        return json_answer(self._service.redactor.value(document))

    async def health(self, _request: Request) -> Response:
        """Say whether the gateway is up."""
        draining = self._service.runs.draining
        state = "draining" if draining else "ok"
        return json_answer({"status": state}, 503 if draining else 200)

    async def state(self, _request: Request) -> Response:
        """Say what the gateway is doing."""
        service, runtime = self._service, self._service.runtime
        document = {
            "status": "draining" if service.runs.draining else "ok",
            "version": VERSION,
            "startedAt": service.started_at,
            "agents": list(agent_ids(service.config)),
            "runs": dict(service.runs.statistics()),
            "openApprovals": len(service.approvals.pending()),
            "statistics": {name: dict(each) for name, each in runtime.statistics().items()},
            "servers": [
                {
                    "name": server.name,
                    "state": server.state,
                    "tools": server.tool_count,
                    "error": server.last_error,
                }
                for server in runtime.servers()
            ],
            "unavailable": [
                {"owner": each.owner, "reason": each.reason} for each in runtime.unavailable()
            ],
        }
        return json_answer(service.redactor.value(document))

    async def metrics(self, _request: Request) -> Response:
        """Give the metrics in Prometheus' text format."""
        service = self._service
        parked = service.runtime.statistics()["continuations"]["parked"]
        runs = service.runs.statistics()
        gauges = {
            "toolcell_runs_active": runs["active"],
            "toolcell_runs_waiting_for_client": runs["waiting_for_client"],
            "toolcell_approvals_open": len(service.approvals.pending()),
            "toolcell_cells_parked": parked,
            "toolcell_uptime_seconds": service.runtime.host.clock.wall() - service.started_at,
        }
        return Response(service.metrics.text(gauges), media_type=PROMETHEUS)

    async def openapi(self, _request: Request) -> Response:
        """Give the OpenAPI document."""
        return json_answer(self._document)


def _message(message: Message) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role, "text": message.text}
    if message.tool_calls:
        out["toolCalls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        out["toolCallId"] = message.tool_call_id
        out["isError"] = message.is_error
    if message.images:
        out["images"] = [image.to_dict() for image in message.images]
    return out


def _no_session() -> Exception:
    return not_found("no such session; GET /api/sessions lists what there is")


def _nothing() -> None:
    """The run goes on without whoever asked about it."""
