"""Owns Ray: starting or joining it, its actors, and what its errors mean. The one file that has it.

Ray is one per process. The first runtime that needs it starts or joins it, the last one leaves; a
Ray that the surrounding program uses itself is used and left as it is.

Above: the pool. Below: Ray, imported when it is needed; `worker`, which it makes actors of.
"""

from __future__ import annotations

import importlib.util
import logging
import socket
import sys
from asyncio import wrap_future
from collections.abc import Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from toolcell.app.distributed.messages import Lost, Packed, Piece, Report, Stopped
from toolcell.app.distributed.worker import ChildWorker
from toolcell.base.version import VERSION
from toolcell.config.env import quiet_ray
from toolcell.errors import ConfigError, ToolcellError
from toolcell.swarm.ports import ChildTask

MISSING_EXTRA: Final = (
    "children cannot run on Ray: it is not installed; run: pip install 'toolcell[ray]'"
)
ADMISSION: Final = (
    "; a cluster that asks for a token needs RAY_AUTH_MODE=token here, and the token in "
    "RAY_AUTH_TOKEN or ~/.ray/auth_token"
)
REACH_SECONDS: Final = 10.0
STORE_BYTES: Final = 128 << 20
"""Of Ray's object store, when we start it: it holds large results on their way, nothing else."""
CPU_SHARE: Final = 0.01
"""What an actor asks for: children wait for models, and a busy cluster must not keep them out; of
actors that ask for nothing, Ray puts all on one machine."""
_SPARE: Final = 16
"""Calls an actor takes beside those of its children."""


class _Shared:
    """What this process has of Ray: how many use it, and whether it is ours to stop.

    Touched by `_THREAD` alone.
    """

    def __init__(self) -> None:
        self.users = 0
        self.ours = False
        self.address: str | None = None


_SHARED: Final = _Shared()
_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="toolcell-ray")
"""Starts Ray. On Linux its processes die with the very thread that started them, so that must be
one that stays; AnyIO's worker threads end when they have been idle for ten seconds."""


def check_installed() -> None:
    """Look whether Ray is there, without importing it.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(MISSING_EXTRA, path="tools.swarm.backend")


def _ray() -> Any:
    """Return Ray, imported with the first use: that takes half a second."""
    first = "ray" not in sys.modules
    quiet_ray()
    import ray.cloudpickle  # noqa: PLC0415

    if first:  # a program that imported it has settled what it logs
        logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


def dumps(value: Any) -> bytes:
    """Return `value` as Ray sends it."""
    made: bytes = _ray().cloudpickle.dumps(value)
    return made


async def join(address: str | None, workers: int) -> None:
    """Start Ray on this machine, or join the cluster at `address`; call `leave` afterwards.

    Raises:
        ToolcellError: it cannot be started or reached.
    """
    await wrap_future(_THREAD.submit(_join, address, workers))


async def leave() -> None:
    """Stop the Ray that was started here, once nobody uses it any more."""
    await wrap_future(_THREAD.submit(_leave))


def _join(address: str | None, workers: int) -> None:
    if _SHARED.users and _SHARED.ours and _SHARED.address != address:
        there = _SHARED.address or "one of its own"
        msg = f"this process is joined to another Ray ({there}); one process can use one"
        raise ConfigError(msg, path="tools.swarm.ray.address")
    if not _SHARED.users:
        _SHARED.ours = _initialise(address, workers)
        _SHARED.address = address
    _SHARED.users += 1


def _leave() -> None:
    _SHARED.users -= 1
    if not _SHARED.users and _SHARED.ours:
        _ray().shutdown()


def _initialise(address: str | None, workers: int) -> bool:
    """Return whether Ray was started or joined here, and not by somebody else before."""
    ray = _ray()
    if ray.is_initialized():
        return False
    # What Ray has to say reaches us as errors; stdout is the program's. It has no public switch.
    ray._private.worker._worker_logs_enabled = False
    own: Mapping[str, Any] = {
        "num_cpus": workers,
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
    }
    if address is not None and address != "auto":
        _reach(address)
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            configure_logging=False,
            **({} if address else own),
        )
    except (OSError, RuntimeError, ValueError, TimeoutError, ray.exceptions.RayError) as error:
        where = f"Ray at {address!r} cannot be joined" if address else "Ray cannot be started"
        msg = f"{where}: {_first_line(error)}{ADMISSION if address else ''}"
        raise ToolcellError(msg) from error
    return True


def _reach(address: str) -> None:
    """Look whether somebody listens there: Ray itself tries for minutes, and cannot be stopped.

    Raises:
        ToolcellError: nobody does.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS):
            pass
    except (OSError, OverflowError) as error:
        msg = f"no Ray listens at {address!r} (tools.swarm.ray.address): {_first_line(error)}"
        raise ToolcellError(msg) from error


class Stream:
    """What happens in one child on a worker."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self._next: Any = None

    async def next(self) -> Piece | Stopped | Lost | None:
        """Return what happened next; None at the end.

        Raises:
            ToolcellError: the worker could not take the child.
        """
        try:
            if self._next is None:
                self._next = await anext(self._generator)
            piece: Piece = await self._next  # when that is cancelled, it can be had again
            self._next = None
        except StopAsyncIteration:
            return None
        except Exception as error:  # noqa: BLE001 - Ray raises classes it makes on the way
            return _meaning(error)
        return piece

    def cancel(self) -> None:
        """End the child."""
        _ray().cancel(self._generator)


class Link:
    """One worker process, an actor of Ray's. It is not restarted: another one takes its place."""

    def __init__(self, cargo: bytes, *, concurrency: int) -> None:
        made = _ray().remote(
            num_cpus=CPU_SHARE,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=concurrency + _SPARE,
            scheduling_strategy="SPREAD",
        )(ChildWorker)
        self._actor = made.remote(VERSION, cargo)

    async def start(self) -> Report | Lost:
        """Start the worker's runtime."""
        answer: Report | Lost = await _answer(self._actor.start.remote())
        return answer

    def run(self, task: ChildTask, known: frozenset[str]) -> Stream:
        """Begin a child."""
        method = self._actor.run.options(num_returns="streaming")
        return Stream(method.remote(task, known))

    async def left(self, run_id: str) -> Packed | Lost:
        """Return what a cancelled child had still to say."""
        answer: Packed | Lost = await _answer(self._actor.left.remote(run_id))
        return answer

    async def close(self) -> Packed | Lost:
        """End the worker's runtime."""
        answer: Packed | Lost = await _answer(self._actor.close.remote())
        return answer

    def kill(self) -> None:
        """End the process, if it still is there: nothing may go on in it unseen."""
        if _ray().is_initialized():
            _ray().kill(self._actor)


async def _answer(reference: Awaitable[Any]) -> Any:
    try:
        return await reference
    except Exception as error:  # noqa: BLE001 - Ray raises classes it makes on the way
        meant = _meaning(error)
        return Lost("the call was cancelled") if isinstance(meant, Stopped) else meant


def _meaning(error: Exception) -> Stopped | Lost:
    """Return what one of Ray's errors means; errors of our own code are raised as such.

    Raises:
        ToolcellError: code in the worker failed.
    """
    kinds = _ray().exceptions
    if isinstance(error, kinds.TaskCancelledError):
        return Stopped()
    if isinstance(error, kinds.RayTaskError):
        cause = getattr(error, "cause", None) or error
        msg = f"the Ray worker failed: {_first_line(cause)}"
        raise ToolcellError(msg) from error
    if isinstance(error, kinds.RayError):
        return Lost(type(error).__name__)
    raise error


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
