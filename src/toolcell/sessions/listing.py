"""Owns what is said of a session: a line in a listing, and the whole of it for `sessions show`.

Above: the stores. Below: `projections`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcell.errors import SessionError
from toolcell.sessions.projections import call_tree, transcript
from toolcell.sessions.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """One session in a listing; times are Unix seconds."""

    session_id: str
    session_key: str
    agent_id: str
    created_at: float
    updated_at: float
    messages: int
    runs: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "sessionId": self.session_id,
            "sessionKey": self.session_key,
            "agentId": self.agent_id,
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
            "messages": self.messages,
            "runs": self.runs,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything that is kept of a session: its records in order, and the contents they name."""

    info: SessionInfo
    records: Sequence[Record]
    contents: Mapping[str, str]


def content_keys(records: Sequence[Record]) -> list[str]:
    """Return the keys of the contents that records name, each once."""
    keys = (str(r.data().get("key")) for r in records if r.type == "content_kept")
    return list(dict.fromkeys(keys))


def children_of(records: Iterable[Record]) -> list[str]:
    """Return the sessions of the children that records tell of, each once."""
    told = (r.data() for r in records if r.type == "child_changed")
    return list(dict.fromkeys(str(each["child_session_id"]) for each in told))


def shown(info: SessionInfo, records: Sequence[Record]) -> dict[str, Any]:
    """Return what `show` says of a session."""
    return {
        "session": info.to_dict(),
        "transcript": transcript(records),
        "calls": [node.to_dict() for node in call_tree(records)],
    }


def unknown_session(session_id: str) -> SessionError:
    """Return the error for a session that is not there."""
    return SessionError(f"no session {session_id!r}; `toolcell sessions list` shows what there is")
