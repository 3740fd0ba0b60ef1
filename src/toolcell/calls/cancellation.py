"""Owns one question: was this task told to stop, or did some code merely raise a cancellation?

A tool that awaits a future which another party cancelled raises the same exception as a real abort;
let through, its caller would wait forever. Above: everything here that runs foreign code.
"""

from __future__ import annotations

import asyncio
import math

import anyio


def asked_to_stop() -> bool:
    """Whether a cancel scope around this task, or the task itself, was really cancelled."""
    if anyio.current_effective_deadline() == -math.inf:
        return True
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
