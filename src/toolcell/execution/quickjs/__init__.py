"""QuickJS-NG in WebAssembly: no ambient authority, snapshots, hard limits."""
