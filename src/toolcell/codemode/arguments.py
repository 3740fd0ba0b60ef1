"""Owns reading the arguments of `exec` and `wait`, and how hooks see and rewrite them.

Rule 3.1, BEHAVIOURS 66 to 77.

Above: the runtime, the gate's seat for controls. Below: `errors`. Refuses to know: cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolcell.config.code_mode import GuestApi, Language
from toolcell.errors import CellError

RETIRED: Final = (
    "Code Mode accepts JavaScript only. Remove language and typecheck; use API.read(...) for tool "
    "types."
)
_ALIASES: Final = ("code", "command")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecArguments:
    """What `exec` was asked to run."""

    code: str
    language: Language = "javascript"
    restart_safe: bool = False
    title: str | None = None


def exec_arguments(
    arguments: Mapping[str, Any],
    *,
    guest_api: GuestApi,
    languages: tuple[Language, ...] = ("javascript", "typescript"),
) -> ExecArguments:
    """Return the arguments of `exec`.

    Raises:
        CellError: `invalid_input`, phase `input`.
    """
    if guest_api == "catalog" and ("language" in arguments or "typecheck" in arguments):
        raise _refused(RETIRED)
    restart_safe = arguments.get("restartSafe")
    if restart_safe is not None and not isinstance(restart_safe, bool):
        raise _refused("restartSafe must be a boolean.")
    title = arguments.get("title")
    return ExecArguments(
        code=_code(arguments),
        language=_language(arguments.get("language"), languages),
        restart_safe=bool(restart_safe),
        title=title if isinstance(title, str) else None,
    )


def wait_argument(arguments: Mapping[str, Any]) -> str:
    """Return the `runId` of `wait`, trimmed; `run_id` is taken as well.

    Raises:
        CellError: `invalid_input`, phase `input`.
    """
    given = arguments.get("runId", arguments.get("run_id"))
    if not isinstance(given, str) or not given.strip():
        raise _refused("runId must be a non-empty string.")
    return given.strip()


def shown_to_hooks(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as hooks see them: `code` and `command` with equal text."""
    shown = dict(arguments)
    present = [
        text for name in _ALIASES if isinstance(text := arguments.get(name), str) and text.strip()
    ]
    if present and all(text == present[0] for text in present):
        shown["code"] = shown["command"] = present[0]
    return shown


def hook_input_kind(arguments: Mapping[str, Any], *, guest_api: GuestApi) -> Language | None:
    """Return the `toolInputKind` of hook events, None when it is not known (BEHAVIOURS 74)."""
    if guest_api == "catalog":
        retired = "language" in arguments or "typecheck" in arguments
        return None if retired else "javascript"
    language = arguments.get("language", "javascript")
    return language if language in {"javascript", "typescript"} else None


def rewritten_by_hooks(shown: Mapping[str, Any], returned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments to run after a hook turned `shown` into `returned`.

    When it changed one alias, the other follows; a blanked alias makes the call invalid rather
    than run the old text. When it changed both, both stay as they are.
    """
    merged = dict(returned)
    changed = [name for name in _ALIASES if returned.get(name) != shown.get(name)]
    if len(changed) == 1:
        text = returned.get(changed[0])
        merged["code"] = merged["command"] = text if isinstance(text, str) else ""
    return merged


def _code(arguments: Mapping[str, Any]) -> str:
    texts = [text for name in _ALIASES if isinstance(text := arguments.get(name), str)]
    filled = [text for text in texts if text.strip()]
    if not filled:
        raise _refused("code or command must be a non-empty string.")
    if len(filled) > 1 and filled[0] != filled[1]:
        raise _refused("code and command must match when both are provided.")
    return filled[0]


def _language(given: object, languages: tuple[Language, ...]) -> Language:
    for language in ("javascript", "typescript"):
        if given == language or (given is None and language == "javascript"):
            if language not in languages:
                enabled = ", ".join(languages)
                msg = f"language {language!r} is not enabled; enabled: {enabled}."
                raise _refused(msg)
            return "typescript" if language == "typescript" else "javascript"
    raise _refused("language must be 'javascript' or 'typescript'.")


def _refused(message: str) -> CellError:
    return CellError(message, code="invalid_input", phase="input")
