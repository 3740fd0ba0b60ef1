"""Owns how hooks are run: in order, bounded in time, closed when one fails (PO-03, SE-07).

Above: the gate. Below: `protocol.hooks`, `record`. Refuses to know: what hooks decide and why.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

import anyio

from toolcell.base.jsontext import dumps, loads
from toolcell.base.raised import text_of_error
from toolcell.calls.cancellation import asked_to_stop
from toolcell.calls.invocation import Invocation
from toolcell.calls.record import Recorder, detached
from toolcell.errors import CallError
from toolcell.protocol.hooks import (
    AfterToolCall,
    Ask,
    BeforeToolCall,
    Block,
    Hooks,
    Proceed,
    ReplaceDetails,
)

ABORT_GRACE_SECONDS: Final = 1.0
"""How long the `after` hooks of an aborted call may take together, however long the call had."""


NO_HOOKS: Final = Hooks()
HOOK_FAILED: Final = "a policy hook failed, and a failing hook stops the call"
"""What the caller is told; the operator is told which one and how."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the `before` hooks came to.

    Attributes:
        view: The call with the arguments to go on with.
        asks: Reasons of the hooks that want a person asked.
    """

    view: BeforeToolCall
    asks: tuple[str, ...] = ()


class HookRunner:
    """Runs the hooks of a run.

    Args:
        hooks: The hooks; None when they could not be had, which blocks every call.
        recorder: Tells the operator which hook failed and how; the caller is told only that.
    """

    __slots__ = ("_hooks", "_recorder")

    def __init__(self, hooks: Hooks | None, recorder: Recorder) -> None:
        self._hooks = hooks
        self._recorder = recorder

    @property
    def has_before(self) -> bool:
        """Whether `before` has anything to do."""
        return self._hooks is None or bool(self._hooks.before)

    @property
    def has_after(self) -> bool:
        """Whether `after` has anything to do."""
        return self._hooks is not None and bool(self._hooks.after)

    async def before(self, invocation: Invocation, arguments: dict[str, Any]) -> Verdict:
        """Ask each `before` hook in turn; each sees what those before it rewrote.

        Raises:
            CallError: `blocked`: a hook said so, or failed, or hooks are not available.
        """
        if self._hooks is None:
            raise blocked(invocation, "policy hooks are not available for this run")
        view = hook_view(invocation, arguments)
        asks: list[str] = []
        for hook in self._hooks.before:
            try:
                shown = replace(view, arguments=detached(view.arguments))
                decision = await _run(hook, shown, self._hooks.timeout_seconds)
                if isinstance(decision, Block):
                    raise blocked(invocation, decision.reason)
                if isinstance(decision, Ask):
                    asks.append(decision.reason)
                else:
                    view = _followed(view, decision)
            except _HookFaultError as fault:
                self._report(invocation, hook, fault)
                raise blocked(invocation, HOOK_FAILED) from fault
        return Verdict(view, tuple(asks))

    async def after(self, invocation: Invocation, seen: AfterToolCall) -> ReplaceDetails | None:
        """Show each `after` hook the outcome; return the last replacement, if there was any.

        Raises:
            CallError: `blocked`: a hook failed, so the result is withheld.
        """
        hooks = NO_HOOKS if self._hooks is None else self._hooks
        last: ReplaceDetails | None = None
        for hook in hooks.after:
            try:
                shown = replace(seen, details=detached(seen.details))
                decision = await _run(hook, shown, hooks.timeout_seconds)
                if isinstance(decision, ReplaceDetails):
                    last, seen = decision, replace(seen, details=decision.details)
                elif decision is not None:
                    _not_a_decision(decision)
            except _HookFaultError as fault:
                self._report(invocation, hook, fault)
                raise withheld(invocation) from fault
        return last

    async def after_failure(self, invocation: Invocation, seen: AfterToolCall) -> None:
        """Show each `after` hook a call that gave no result; nothing can be replaced.

        A hook that fails is reported to the operator alone: the call has failed already. The hooks
        of an aborted call are shielded from its cancellation, for a second in all.
        """
        aborted = seen.status == "aborted"
        with anyio.CancelScope(shield=aborted) as grace:
            if aborted:
                grace.deadline = anyio.current_time() + ABORT_GRACE_SECONDS
            with suppress(CallError):
                await self.after(invocation, seen)

    def _report(
        self, invocation: Invocation, hook: Callable[[Any], Any], why: _HookFaultError
    ) -> None:
        name = getattr(hook, "__qualname__", type(hook).__name__)
        self._recorder.warn(invocation, f"hook {name!r} {why}; the call fails closed")


class _HookFaultError(Exception):
    """A hook that gave no decision; the text completes `hook 'x' …`, for the operator."""


async def _run(hook: Callable[[Any], Any], shown: Any, seconds: float) -> Any:
    try:
        decision = hook(shown)
        if not inspect.isawaitable(decision):
            return decision
        with anyio.move_on_after(seconds):
            return await decision
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except anyio.get_cancelled_exc_class() as error:
        if asked_to_stop():
            raise
        msg = "was cancelled from within"
        raise _HookFaultError(msg) from error
    except BaseException as error:
        why = f"raised {text_of_error(error)}"
        raise _HookFaultError(why) from error
    why = f"took more than {seconds:g} s"
    raise _HookFaultError(why)


def _followed(view: BeforeToolCall, decision: Any) -> BeforeToolCall:
    match decision:
        case None | Proceed(arguments=None):
            return view
        case Proceed(arguments=arguments) if isinstance(arguments, Mapping):
            try:
                return replace(view, arguments=loads(dumps(dict(arguments))))
            except (TypeError, ValueError, RecursionError) as error:
                why = f"rewrote the arguments to something that is not JSON: {error}"
                raise _HookFaultError(why) from error
        case Proceed():
            msg = "rewrote the arguments to something that is not an object"
            raise _HookFaultError(msg)
    return _not_a_decision(decision)


def _not_a_decision(decision: object) -> NoReturn:
    why = f"returned a {type(decision).__name__}, which is no decision"
    raise _HookFaultError(why)


def blocked(invocation: Invocation, reason: str) -> CallError:
    """Return the error of a call that was stopped before its body ran (BEHAVIOURS 286)."""
    said = reason.strip() or "no reason was given"
    return CallError(
        f'Tool "{invocation.subject}" was blocked before execution: {said}',
        code="blocked",
        effect="none",
    )


def withheld(invocation: Invocation) -> CallError:
    """Return the error of a call that ran and whose result may not be handed over."""
    return CallError(
        f'Tool "{invocation.subject}" ran, but a policy hook failed, so its result is withheld. '
        "Check its effects before you call it again.",
        code="blocked",
        effect="unknown",
    )


def hook_view(invocation: Invocation, arguments: Any) -> BeforeToolCall:
    """Return what hooks are shown of a call (rules 3.12, 8.1)."""
    sourced = invocation.sourced
    return BeforeToolCall(
        scope=invocation.scope,
        call_id=invocation.call_id,
        parent_id=invocation.parent_id,
        tool_name=sourced.tool.name,
        tool_id=None if invocation.control else sourced.id,
        source=sourced.source,
        source_name=None if sourced.owner == "core" else sourced.owner,
        arguments=arguments,
        tool_kind=invocation.tool_kind,
        tool_input_kind=invocation.tool_input_kind,
    )
