"""Owns what a caller is told when a tool body raises (BR-05, rule 3.10).

The message of the exception is kept, so that a model can repair its call; host paths, tracebacks,
class names and addresses are not. Above: the gate. Below: `errors`.
"""

from __future__ import annotations

import re
import sys
from pathlib import PurePath
from typing import Final

from toolcell.base.jsontext import canonical, clip_utf8
from toolcell.calls.invocation import Invocation
from toolcell.errors import CallError

MAX_MESSAGE_BYTES: Final = 4096
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*(?:\n|\Z)|\n)*")
_FRAME: Final = re.compile(r'^[ \t]*File "[^"\n]*", line \d+.*\n?', re.MULTILINE)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_CLASS: Final = re.compile(r"<class '(?:[\w.]+\.)?(\w+)'>")
_QUALIFIED: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ", re.MULTILINE)
_HOST_ROOTS: Final = frozenset(
    {
        *("Applications", "Library", "System", "Users", "Volumes", "app", "bin", "boot", "builds"),
        *("data", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "nix", "opt", "private"),
        *("proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var", "workspace"),
        *(part for path in (sys.prefix, sys.base_prefix) for part in PurePath(path).parts[1:2]),
    }
)
_POSIX_PATH: Final = re.compile(r"(?<![\w/:.…])/([\w.+@-]+)((?:/[\w.+@ -]*[\w.+@-])*)/?")
_WINDOWS_PATH: Final = re.compile(
    r"(?<!\w)[A-Za-z]:\\(?:[^\\/:*?\"<>|\r\n']+\\)*([^\\/:*?\"<>|\r\n']*)"
)
_MAX_GROUPED: Final = 3


def tool_failure(error: BaseException, invocation: Invocation, arguments: object) -> CallError:
    """Return the CallError for an exception out of a tool body; its effects are not known.

    Text from an MCP server or a client is marked untrusted.
    """
    message = guest_text(_message(error), known=arguments)
    return CallError(
        message or f"Tool {invocation.subject!r} failed without a message.",
        code="tool_error",
        effect="unknown",
        untrusted=not invocation.sourced.trusted,
    )


def _message(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        leaves = [_message(leaf) for leaf in _leaves(error)[:_MAX_GROUPED]]
        return "; ".join(dict.fromkeys(filter(None, leaves)))
    if isinstance(error, KeyError) and len(error.args) == 1:
        return f"no such key: {error.args[0]!r}"
    if isinstance(error, SystemExit):
        return f"the tool tried to exit the process ({error.code!r})"
    if isinstance(error, OSError) and error.strerror:
        names = [str(n) for n in (error.filename, error.filename2) if n is not None]
        return f"{error.strerror}: {', '.join(names)}" if names else error.strerror
    text = _text(error)
    if not text and isinstance(error, TimeoutError):
        return "timed out"
    return text


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - a tool's own __str__ may raise anything
        return ""


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    left = list(reversed(group.exceptions))
    while left:
        error = left.pop()
        if isinstance(error, BaseExceptionGroup):
            left.extend(reversed(error.exceptions))
        else:
            leaves.append(error)
    return leaves


def guest_text(text: str, *, known: object = None) -> str:
    """Return `text` without what only the host should know, in at most 4 KiB.

    Args:
        text: The text.
        known: Plain JSON the caller already has; host paths that stand in it are kept.
    """
    clean = _QUALIFIED.sub("", _FRAME.sub("", _TRACEBACK.sub("", text[: MAX_MESSAGE_BYTES * 4])))
    clean = _CLASS.sub(r"\1", _ADDRESS.sub("", clean))
    if "/" in clean or "\\" in clean:
        clean = _without_paths(clean, _known_text(known))
    clean = clean.strip()
    clipped = clip_utf8(clean, MAX_MESSAGE_BYTES)
    return clipped if clipped == clean else f"{clipped} [truncated]"


def _known_text(known: object) -> str:
    try:
        return canonical(known).replace("\\\\", "\\")
    except (TypeError, ValueError, RecursionError):
        return ""


def _without_paths(text: str, known: str) -> str:
    def posix(found: re.Match[str]) -> str:
        whole, root, rest = found[0], found[1], found[2]
        python = whole.endswith((".py", ".so")) or "site-packages" in whole
        if whole.split(" ", 1)[0] in known or not (python or (root in _HOST_ROOTS and rest)):
            return whole
        return f"…/{whole.rstrip('/').rsplit('/', 1)[-1]}"

    def windows(found: re.Match[str]) -> str:
        return found[0] if found[0] in known else f"…/{found[1]}"

    return _WINDOWS_PATH.sub(windows, _POSIX_PATH.sub(posix, text))
