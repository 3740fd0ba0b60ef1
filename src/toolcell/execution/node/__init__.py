"""Node in a supervisor process: quick, trusted execution; not a security boundary (rule 9.2)."""

from toolcell.execution.node.executor import NodeExecutor, NodeOptions

__all__ = ["NodeExecutor", "NodeOptions"]
