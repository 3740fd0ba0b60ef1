"""QuickJS-NG in WebAssembly: no ambient authority, snapshots, hard limits."""

from toolcell.execution.quickjs.executor import QuickJSExecutor, QuickJSOptions

__all__ = ["QuickJSExecutor", "QuickJSOptions"]
