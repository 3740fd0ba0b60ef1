"""Owns the words no guest identifier may take: reserved words, guest globals, unsafe properties.

Above: `catalog.names`. Below: the standard library. Refuses to know: tools.
"""

from __future__ import annotations

from typing import Final

# ECMAScript reserved words in strict and module code, the literals, and the two names strict
# code may not bind.
_RESERVED_WORDS = """
await break case catch class const continue debugger default delete do else enum export extends
false finally for function if implements import in instanceof interface let new null package
private protected public return static super switch this throw true try typeof var void while
with yield arguments eval
"""
RESERVED_WORDS: Final = frozenset(_RESERVED_WORDS.split())

MODULE_WORDS: Final = frozenset({"require", "module", "exports"})
"""Words of module loaders: the source screen refuses calls of them (rule 3.2), so a tool of that
name could never be called (rule 4.7)."""

# Rule 6.3 and the tables of rule "Two guest APIs": what a cell finds besides its tools.
_GUEST_GLOBALS = """
tools catalog namespaces text json yield_control MCP API ALL_TOOLS results agents phase log
skills console setTimeout clearTimeout setInterval clearInterval setImmediate clearImmediate
queueMicrotask structuredClone TextEncoder TextDecoder atob btoa
"""
GUEST_GLOBALS: Final = frozenset(_GUEST_GLOBALS.split())

# A tool of such a name would take the language's own tool out of the program's hands.
_STANDARD_GLOBALS = """
globalThis undefined NaN Infinity Object Function Array Number Boolean String Symbol BigInt Math
JSON Date RegExp Promise Proxy Reflect Map Set WeakMap WeakSet WeakRef FinalizationRegistry
Iterator AsyncIterator Error AggregateError EvalError RangeError ReferenceError SyntaxError
TypeError URIError SuppressedError DisposableStack AsyncDisposableStack ArrayBuffer
SharedArrayBuffer Atomics DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array
Int32Array Uint32Array Float16Array Float32Array Float64Array BigInt64Array BigUint64Array
parseInt parseFloat isNaN isFinite decodeURI decodeURIComponent encodeURI encodeURIComponent
escape unescape Intl WebAssembly
"""
STANDARD_GLOBALS: Final = frozenset(_STANDARD_GLOBALS.split())

RESERVED_GLOBALS: Final = RESERVED_WORDS | MODULE_WORDS | GUEST_GLOBALS | STANDARD_GLOBALS

INTERNAL_PREFIX: Final = "__openclaw"

UNSAFE_PROPERTIES: Final = frozenset({"__proto__", "constructor", "prototype", "then", "toJSON"})
"""Property names with a meaning of their own: `then` makes an object a promise, `toJSON` changes
how it is written, the others reach its prototype."""

TOOLS_METHODS: Final = frozenset({"search", "describe", "call", "callValue"})
"""The methods of `tools`, never taken by a convenience function (rule 4.7)."""

MCP_METHODS: Final = frozenset({"resources", "prompts"})
"""The members of `MCP.<server>` that hold operations (rule 5.1)."""
