"""Owns the `apply_patch` tool: changes of several files, all of them or none.

Above: `sources.core.toolset`. Below: `patch_text`, `patch_apply`, `placing`.

Every new text is worked out, then written beside its target; only when all of that went well are
the files put in place. What fails then is taken back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from toolcell.errors import CallError
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import STRING, array, closed
from toolcell.sources.core.editing import text_of
from toolcell.sources.core.patch_apply import added_text, patched_text
from toolcell.sources.core.patch_text import FileChange, read_patch
from toolcell.sources.core.placing import Place, changed, placed, same_file, told_of
from toolcell.sources.core.work import Arguments, Stop, Text, in_thread, refused
from toolcell.sources.core.workspace import NotFoundError, WorkspaceRoots
from toolcell.sources.core.writing import Turns, encoded
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

MAX_PATCH_CHARS: Final = 4 << 20
MAX_FILES: Final = 200

OUTPUT: Final[Mapping[str, Any]] = closed(
    {"added": array(STRING), "modified": array(STRING), "deleted": array(STRING)}
)

_DESCRIPTION: Final = """\
Change several files of the workspace at once: all of it happens, or nothing. The patch is a unified
diff, or in this form:
*** Begin Patch
*** Update File: path
@@ a line above the change, when needed to tell places apart
 context
-old line
+new line
*** Add File: path
+line
*** Delete File: path
*** End Patch
`*** Move to: path` may follow an Update line. Lines of context must be as in the file."""


class PatchArguments(Arguments):
    """Arguments of `apply_patch`."""

    patch: Annotated[
        Text, Field(min_length=1, max_length=MAX_PATCH_CHARS, description="The patch.")
    ]


def apply_patch_tool(workspace: WorkspaceRoots, turns: Turns) -> Tool:
    """Return the `apply_patch` tool for a workspace."""

    async def execute(arguments: PatchArguments) -> ToolResult:
        return await in_thread(lambda stop: _apply(workspace, turns, arguments.patch, stop))

    return build_tool(
        name="apply_patch",
        label="Apply patch",
        description=_DESCRIPTION,
        parameters=PatchArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=False,
    )


@dataclass(slots=True)
class _Step:
    """One file to put in place or to delete; `data` is None for the latter."""

    path: str
    data: bytes | None
    place: Place
    staged: str | None = None
    aside: str | None = None
    done: bool = False

    @property
    def kind(self) -> Literal["added", "modified", "deleted"]:
        if self.data is None:
            return "deleted"
        return "added" if self.place.info is None else "modified"


@dataclass(slots=True)
class _Wanted:
    """What a file is to hold; None to be deleted."""

    path: str
    data: bytes | None
    info: os.stat_result | None = None


def _apply(workspace: WorkspaceRoots, turns: Turns, patch: str, stop: Stop) -> ToolResult:
    changes = read_patch(patch)
    if len(changes) > MAX_FILES:
        message = f"The patch changes {len(changes)} files, at most {MAX_FILES} may."
        raise refused(message)
    with turns.taken(stop):
        wanted = [each for change in changes for each in _wanted(workspace, change, stop)]
        with ExitStack() as stack:
            steps = _steps(workspace, wanted, stack)
            _carry_out(steps)
    details: dict[str, list[str]] = {"added": [], "modified": [], "deleted": []}
    for step in steps:
        details[step.kind].append(step.place.shown)
    signs = {"added": "A", "modified": "M", "deleted": "D"}
    text = "\n".join(f"{signs[kind]} {path}" for kind, paths in details.items() for path in paths)
    return ToolResult(content=(TextContent(text),), details=details)


def _wanted(workspace: WorkspaceRoots, change: FileChange, stop: Stop) -> list[_Wanted]:
    """Work out what one change comes to; nothing is touched."""
    if change.action == "add":
        _must_be_free(workspace, change.path)
        return [_Wanted(change.path, encoded(added_text(change), change.path))]
    with placed(workspace, change.path, make_parents=False) as place:
        if change.action == "delete" and place.info is not None:
            return [_Wanted(change.path, None, info=place.info)]
        text = text_of(place, change.path)
        data = encoded(patched_text(text, change, stop), change.path)
        if change.move_to is None or change.move_to == change.path:
            return [_Wanted(change.path, data, info=place.info)]
        _must_be_free(workspace, change.move_to)
        gone = _Wanted(change.path, None, info=place.info)
    return [gone, _Wanted(change.move_to, data)]


def _must_be_free(workspace: WorkspaceRoots, path: str) -> None:
    try:
        with placed(workspace, path, make_parents=False) as place:
            if place.info is None:
                return
    except NotFoundError:
        return
    message = f"{path!r} exists already; change it with '*** Update File'. Nothing was changed."
    raise refused(message)


def _steps(workspace: WorkspaceRoots, wanted: Sequence[_Wanted], stack: ExitStack) -> list[_Step]:
    """Find every place; two changes of one file are refused."""
    steps: list[_Step] = []
    seen: set[object] = set()
    for each in wanted:
        make = each.data is not None and each.info is None
        place = stack.enter_context(placed(workspace, each.path, make_parents=make))
        if place.key in seen:
            message = f"{each.path!r} is changed twice in one patch; put its changes together."
            raise refused(message)
        seen.add(place.key)
        if not same_file(place.info, each.info):
            raise changed(each.path)
        steps.append(_Step(each.path, each.data, place))
    return steps


def _carry_out(steps: Sequence[_Step]) -> None:
    try:
        for step in steps:
            if step.data is not None:
                with told_of(step.path):
                    step.staged = step.place.stage(step.data)
        for step in steps:
            step.place.check_unchanged()
        for step in steps:
            with told_of(step.path):
                _put(step)
    except BaseException:
        _take_back(steps)
        raise
    finally:
        # Renaming one of two names of a file onto the other does nothing, so `aside` may be left.
        for step in steps:
            for name in (step.staged, step.aside):
                if name is not None:
                    step.place.drop(name)


def _put(step: _Step) -> None:
    place = step.place
    if place.info is not None:
        step.aside = place.set_aside() if step.staged is None else place.keep()
    if step.staged is not None:
        place.commit(step.staged)
        step.staged = None
    step.done = True


def _take_back(steps: Sequence[_Step]) -> None:
    """Undo what was done, the last first.

    Raises:
        CallError: something cannot be undone; its effect is unknown.
    """
    lost: list[str] = []
    for step in reversed(steps):
        try:
            if step.aside is not None:
                step.place.commit(step.aside)
            elif step.done:
                step.place.remove()
        except OSError:
            lost.append(step.path)
    if lost:
        message = f"The patch failed half way, and these cannot be restored: {', '.join(lost)}."
        raise CallError(message, code="tool_error", effect="unknown")
