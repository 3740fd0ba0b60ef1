"""Owns what a model is told about the Tool Search controls (rules 10.2 to 10.4).

Constant text: the number of hidden tools never changes a byte of it; nothing of a tool gets in.

Above: controls. Below: nothing.
"""

from __future__ import annotations

from typing import Final

CODE_NAME: Final = "tool_search_code"
SEARCH_NAME: Final = "tool_search"
DESCRIBE_NAME: Final = "tool_describe"
CALL_NAME: Final = "tool_call"
STRUCTURED_NAMES: Final = (SEARCH_NAME, DESCRIBE_NAME, CALL_NAME)
CONTROL_NAMES: Final = (CODE_NAME, *STRUCTURED_NAMES)

CODE_TOOL: Final = """\
Find and call this run's hidden tools with a short JavaScript body. It runs in an isolated \
process: no require, import, files or network; only console.log/warn/error and
- await openclaw.tools.search("what you want to do", {limit}): hits {id, name, description, \
source, input, output?}. input is a TypeScript signature; "unknown" means describe it first.
- await openclaw.tools.describe(id): the exact parameters schema, and outputSchema where declared.
- await openclaw.tools.call(id, args): {tool, result}; the value is usually result.details. A call \
runs only when it is awaited.
Top-level await and return work; return the final value. Example:
const [hit] = await openclaw.tools.search("create an issue");
return (await openclaw.tools.call(hit.id, {title: "Crash on start"})).result.details;
Use only ids that a search gave. An error says what to change; effects of calls that ran remain."""
CODE: Final = "JavaScript body: statements, await allowed, `return` for the value. No Markdown."

SEARCH_TOOL: Final = (
    "Find hidden tools by what you want to do. Send query, or queries to look for several things "
    "at once. A hit has the id for tool_call and its input as a TypeScript signature; when that is "
    '"unknown" or not enough, use tool_describe first.'
)
DESCRIBE_TOOL: Final = (
    "Get the exact parameters schema of one tool that tool_search found, and its outputSchema "
    "where it declares one."
)
CALL_TOOL: Final = (
    "Call one tool that tool_search found, by its exact id, with its arguments nested under args. "
    "Returns {tool, result}."
)
QUERY: Final = "What you want to do, in a few words."
LIMIT: Final = "Most hits."
QUERIES: Final = "Several searches in one call; use instead of query."
ID: Final = "The id of a hit, such as openclaw:core:read."
ARGS: Final = "The tool's own arguments."

DIRECTORY_HEAD: Final = "Available deferred-schema tools:"
DIRECTORY_NONE: Final = "Available deferred-schema tools: none."
DIRECTORY_MORE: Final = "MCP and client tools may also be found with tool_search."
DIRECTORY_HOW: Final = (
    "Tools in your tool list: call them directly. A tool named above: its schema is not shown; get "
    "its input with tool_search or tool_describe, then call it by tool_call, or directly by its "
    "exact name."
)
NO_DESCRIPTION: Final = "No description."
