"""Parked cells: how long they live and who may resume them."""

from toolcell.codemode.continuations.cap import MAX_SUSPENDED, SuspensionCap
from toolcell.codemode.continuations.store import ContinuationStore

__all__ = ["MAX_SUSPENDED", "ContinuationStore", "SuspensionCap"]
