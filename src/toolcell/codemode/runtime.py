"""Owns code mode for one run: `exec` and `wait` from arguments to the contract's result.

Above: surface, the library face. Below: everything in this room, `calls.access`, executors.
Refuses to know: activation, policy, which tools are direct.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.identifiers import digest, fresh
from toolcell.base.jsontext import dumps
from toolcell.base.spawner import Spawner
from toolcell.calls.access import RunCatalog
from toolcell.catalog.quick_index import quick_index
from toolcell.codemode.arguments import ExecArguments, exec_arguments, wait_argument
from toolcell.codemode.budget import CellBudget
from toolcell.codemode.cell import Cell, CellPlan, CellPorts
from toolcell.codemode.continuations.store import ContinuationStore
from toolcell.codemode.controls import Controls, make_controls
from toolcell.codemode.description import exec_description
from toolcell.codemode.events import CellRecord
from toolcell.codemode.extensions import DeclarationShelf, GuestExtension, guest_api
from toolcell.codemode.extensions.api import MENTION
from toolcell.codemode.extensions.contract import CellContext, Handler
from toolcell.codemode.extensions.namespaces import RunNamespaces
from toolcell.codemode.faults import ABORTED
from toolcell.codemode.image import ImagePlan, ImageShelf
from toolcell.codemode.journal import Journal, Journalled
from toolcell.codemode.namespaces.registry import NamespaceHolder
from toolcell.codemode.output import CuttingLedger, Ledger, RefusingLedger
from toolcell.codemode.results import Failed, Outcome
from toolcell.codemode.saved import SavedResults
from toolcell.codemode.screen import cleaned, screened
from toolcell.codemode.typescript import FILENAME as TYPESCRIPT_FILE
from toolcell.codemode.typescript import Transform, Transformed, to_javascript
from toolcell.codemode.view import GuestView
from toolcell.config.code_mode import CodeModeOptions, ExecutorName
from toolcell.config.tree import Config
from toolcell.errors import CallError, CellError
from toolcell.execution.contract import Executor, Limits, Program
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.messages import ToolDefinition
from toolcell.protocol.sink import NullSink, Sink, diagnostics_only
from toolcell.tools.tool import ToolContext

INDEX_CHARACTERS: Final = 8000
NO_TYPESCRIPT: Final = (
    "no TypeScript transformer is available; submit the program as JavaScript, without types."
)

Executors: TypeAlias = Callable[[ExecutorName], Awaitable[Executor]]
"""Gives the configured executor; raises RuntimeUnavailableError, never another executor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePorts:
    """What a runtime is lent by `app`.

    Attributes:
        executors: Gives the executor of a name.
        spawner: Owns the tasks of nested calls, which may outlive an `exec`.
        store: The parked cells of the host, shared by all its runs.
        sink: Gets the events.
        clock: Tells the time.
        images: The guest images of the host, shared by its runs.
        transform: Turns TypeScript into JavaScript; None where there is no transformer.
        declarations: The declaration files of the host, shared by its runs.
        saved: The saved results of the host; each run sees its own.
        config: What plugin namespaces are told of the configuration.
        namespaces: Whose plugin namespaces its runs see; None for the newest of each plugin.
    """

    executors: Executors
    spawner: Spawner
    store: ContinuationStore
    sink: Sink = field(default_factory=NullSink)
    clock: Clock = SYSTEM_CLOCK
    images: ImageShelf = field(default_factory=ImageShelf)
    transform: Transform | None = None
    declarations: DeclarationShelf = field(default_factory=DeclarationShelf)
    saved: SavedResults = field(default_factory=SavedResults)
    config: Config | None = None
    namespaces: NamespaceHolder | None = None


class CodeModeRuntime:
    """Code mode over one run's catalog.

    Args:
        catalog: The run's catalog; its scope is the run's.
        options: The effective options of `tools.codeMode`.
        ports: What is lent.
        visible_tools: Names of the tools the model sees, for telemetry.
        extra: Extensions beside those of the guest API, such as plugin namespaces.

    Attributes:
        always_restart_safe: Every cell is restart-safe, whatever the model says (BEHAVIOURS 213).
    """

    def __init__(
        self,
        catalog: RunCatalog,
        options: CodeModeOptions,
        ports: RuntimePorts,
        *,
        visible_tools: tuple[str, ...] = ("exec", "wait"),
        extra: tuple[GuestExtension, ...] = (),
    ) -> None:
        self.options = options
        self.visible_tools = visible_tools
        self.always_restart_safe = False
        self._catalog = catalog
        self._ports = ports
        self._aborts = 0
        namespaces = RunNamespaces(
            catalog.scope,
            config=ports.config,
            aborted=lambda: self._aborts > 0,
            tell=self._tell,
            holder=ports.namespaces,
        )
        own = (namespaces.extension(), *extra)
        shelf = ports.declarations
        self._extensions = (*guest_api(options, shelf, own), *own)
        self._declaring = (*guest_api(options, shelf, own, with_files=True), *own)
        self._handlers: dict[str, Handler] = {}
        for extension in self._extensions:
            self._handlers.update(extension.handlers)
        self._record = CellRecord(ports.sink, ports.clock, self._telemetry)
        self._told_images: set[str] = set()
        self._planned: ImagePlan | None = None
        self._described: tuple[GuestView, Controls] | None = None

    def controls(self) -> Controls:
        """Return `exec` and `wait` as tools; the description follows the visible catalog."""
        view = self._plan().view
        if self._described is None or self._described[0] is not view:
            index = quick_index(
                self._catalog.snapshot,
                view.entries,
                api=self.options.guest_api,
                budget=INDEX_CHARACTERS,
            )
            made = make_controls(
                description=exec_description(view, self._extensions, self.options, index),
                options=self.options,
                run=self._exec_body,
                resume=self._wait_body,
            )
            self._described = (view, made)
        return self._described[1]

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return what a model is shown of the two controls."""
        return tuple(
            ToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in self.controls()
        )

    async def prepare(self) -> None:
        """Load the engine and make the image ready, so that the first cell need not.

        Raises:
            RuntimeUnavailableError: the executor cannot be loaded or started.
        """
        executor = await self._ports.executors(self.options.executor)
        await executor.prepare(self._plan().image)

    async def exec(
        self,
        arguments: Mapping[str, Any],
        *,
        call_id: str,
        on_update: Callable[[Any], None] | None = None,
        force_restart_safe: bool = False,
    ) -> Outcome:
        """Run a cell; bad arguments and every other trouble come back as a failed result.

        Args:
            arguments: As the model or a hook gave them.
            call_id: The `exec` call, parent of the nested calls.
            on_update: Gets the progress of nested calls.
            force_restart_safe: The host wants it, whatever the model said (BEHAVIOURS 213).
        """
        aborts = self._aborts
        try:
            asked = self._asked(arguments)
            plan = self._plan()
            typescript = await self._javascript(asked, plan.view)
            source = asked.code
            if typescript is None:
                source = await self._screened(source, plan.view)
            executor = await self._ports.executors(self.options.executor)
            if MENTION in source:
                plan = await self._with_declarations(plan)
            safe = asked.restart_safe or force_restart_safe or self.always_restart_safe
            asked = replace(asked, code=source, restart_safe=safe)
            cell = self._cell(asked, plan, executor, call_id)
            if typescript is not None:
                cell.plan = with_typescript(cell.plan, typescript)
        except (CellError, CallError) as error:
            return self._refused(error)
        if self._aborts != aborts:
            return self._aborted()
        cell.context.on_update = on_update
        self._record.started(cell)
        return await cell.run()

    async def wait(
        self,
        arguments: Mapping[str, Any],
        *,
        call_id: str,
        on_update: Callable[[Any], None] | None = None,
    ) -> Outcome:
        """Resume a parked cell of this run; as `exec`, it does not raise for trouble.

        Args:
            arguments: `{runId}`.
            call_id: The `wait` call; nested calls keep the `exec` call as their parent.
            on_update: Gets the progress of nested calls from now on.
        """
        del call_id
        try:
            claimed = self._ports.store.claim(wait_argument(arguments), self._catalog.scope)
        except CellError as error:
            return self._refused(error)
        if not isinstance(claimed, Cell):
            msg = "the continuation store holds something that is no cell"
            raise TypeError(msg)
        claimed.context.on_update = on_update
        return await claimed.resume()

    async def abort(self, reason: str = "") -> None:
        """End every cell of this run, running, parked or about to start, each exactly once."""
        self._aborts += 1
        for cell in self._record.live:
            await cell.give_up(reason)

    async def aclose(self) -> None:
        """End every cell: the run is over. Safe to call again."""
        await self.abort("the run is over")
        self._ports.saved.drop_run(self._catalog.scope)

    def _asked(self, arguments: Mapping[str, Any]) -> ExecArguments:
        options = self.options
        if options.guest_api == "catalog":
            return exec_arguments(arguments, guest_api="catalog")
        return exec_arguments(arguments, guest_api="tools", languages=options.languages)

    async def _screened(self, source: str, view: GuestView) -> str:
        return await screened(source, shell_call=view.shell_call, search_call=view.search_call)

    async def _javascript(self, asked: ExecArguments, view: GuestView) -> Transformed | None:
        """Return a TypeScript cell as JavaScript, screened; None for a JavaScript cell.

        What does not parse is screened as it is: it may be shell text, which has better advice.
        """
        if asked.language == "javascript":
            return None
        if self._ports.transform is None:
            raise CellError(NO_TYPESCRIPT, code="runtime_unavailable", phase="host")
        seconds = self.options.timeout_ms / 1000
        try:
            made = await to_javascript(cleaned(asked.code), self._ports.transform, seconds)
        except CellError as error:
            if error.phase == "input":
                await self._screened(asked.code, view)
            raise
        return replace(made, code=await self._screened(made.code, view))

    def _plan(self) -> ImagePlan:
        """Return the image of what is visible now; the same one for as long as that stays."""
        entries = self._catalog.entries()
        planned = self._planned
        if planned is not None and (
            planned.view.entries is entries or planned.view.entries == entries
        ):
            return planned
        view = GuestView(
            entries=entries,
            operations=self._catalog.snapshot.operations,
            guest_api=self.options.guest_api,
        )
        self._planned = self._ports.images.plan(view, self._extensions)
        return self._planned

    async def _with_declarations(self, plan: ImagePlan) -> ImagePlan:
        """Return the image that carries the declaration files, for a program that mentions API."""
        await self._ports.declarations.ready(plan.view)
        return self._ports.images.plan(plan.view, self._declaring)

    def _cell(
        self, asked: ExecArguments, plan: ImagePlan, executor: Executor, call_id: str
    ) -> Cell:
        options, scope = self.options, self._catalog.scope
        seconds = options.timeout_ms / 1000
        replay = "cm_replay_" + digest(scope.session_id, scope.run_id, call_id, asked.code)
        context = CellContext(
            catalog=self._catalog,
            view=plan.view,
            scope=scope,
            saved=self._ports.saved,
            saved_allowance=min(options.memory_limit_bytes, options.max_snapshot_bytes),
            parent_id=call_id,
            budget=CellBudget(seconds, clock=self._ports.clock),
            restart_safe=asked.restart_safe,
            replay_id=replay if asked.restart_safe else None,
            # The declaration files of remote servers are remote text (rule 4.9).
            untrusted=MENTION in asked.code and bool(plan.view.servers),
        )
        cell_id = fresh("cm")
        made = CellPlan(
            cell_id=cell_id,
            call_id=call_id,
            scope=scope,
            executor=self._told(executor, cell_id, call_id),
            program=Program(image=plan.image, source=asked.code, start=self._start(context)),
            limits=Limits(
                memory_bytes=options.memory_limit_bytes, snapshot_bytes=options.max_snapshot_bytes
            ),
            handlers=self._handlers,
            timeout_ms=options.timeout_ms,
            ttl_seconds=options.snapshot_ttl_seconds,
            slots=options.max_pending_tool_calls,
            inbox_bytes=options.inbox_bytes,
            show_aborted=options.guest_api == "catalog",
            takes_typescript=options.guest_api == "tools" and "typescript" in options.languages,
            replay_id=replay,
        )
        ports = CellPorts(
            clock=self._ports.clock,
            spawner=self._ports.spawner,
            store=self._ports.store,
            listener=self._record,
        )
        return Cell(made, context, self._ledger(), ports)

    def _told(self, executor: Executor, cell_id: str, call_id: str) -> Executor:
        """Return an executor whose steps are on record, where there is one."""
        if diagnostics_only(self._ports.sink):
            return executor
        journal = Journal(
            sink=self._ports.sink,
            clock=self._ports.clock,
            scope=self._catalog.scope,
            call_id=call_id,
            cell_id=cell_id,
            told=self._told_images,
        )
        return Journalled(executor, journal)

    def _start(self, context: CellContext) -> str:
        started = {e.name: e.start(context) for e in self._extensions if e.start is not None}
        return dumps(started) if started else "{}"

    def _tell(self, problem: str) -> None:
        at, scope = self._ports.clock.wall(), self._catalog.scope
        self._ports.sink.emit(
            Diagnostic(at=at, level="warning", subject="namespaces", message=problem, scope=scope)
        )

    def _ledger(self) -> Ledger:
        limit = self.options.max_output_bytes
        if self.options.guest_api == "catalog":
            return CuttingLedger(limit)
        return RefusingLedger(limit)

    def _refused(self, error: CellError | CallError) -> Failed:
        code: Any = error.code if isinstance(error, CellError) else "internal_error"
        phase = error.phase if isinstance(error, CellError) else "host"
        return Failed(error=error.message, code=code, phase=phase, telemetry=self._telemetry())

    def _aborted(self) -> Failed:
        """Return the end of a cell of which nothing ran yet; one API has no code for it."""
        code: Any = "aborted" if self.options.guest_api == "catalog" else None
        return Failed(error=ABORTED, code=code, phase="host", telemetry=self._telemetry())

    def _telemetry(self) -> dict[str, Any]:
        return {**self._catalog.telemetry(), "visibleTools": list(self.visible_tools)}

    async def _exec_body(self, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        return await self.exec(arguments, call_id=context.call_id, on_update=context.update)

    async def _wait_body(self, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        return await self.wait(arguments, call_id=context.call_id, on_update=context.update)


def with_typescript(plan: CellPlan, made: Transformed) -> CellPlan:
    """Return the plan of a cell that runs transformed code and tells places of its source."""
    program = replace(plan.program, source=made.code, filename=TYPESCRIPT_FILE)
    return replace(plan, program=program, remap=made.remap)
