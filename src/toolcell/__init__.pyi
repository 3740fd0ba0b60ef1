"""The public face; see `__init__.py`, which imports each name when it is first used."""

from toolcell.app.host import Host as Host
from toolcell.codemode.results import Completed as Completed
from toolcell.codemode.results import Failed as Failed
from toolcell.codemode.results import Waiting as Waiting
from toolcell.errors import CallError as CallError
from toolcell.errors import ConfigError as ConfigError
from toolcell.errors import ToolcellError as ToolcellError
from toolcell.library.code_mode import CodeMode as CodeMode
from toolcell.library.tool_search import ToolSearch as ToolSearch
from toolcell.plugin_sdk.define import ToolPlugin as ToolPlugin
from toolcell.plugin_sdk.define import define_tool_plugin as define_tool_plugin
from toolcell.protocol.approvals import ApprovalAnswer as ApprovalAnswer
from toolcell.protocol.approvals import ApprovalRequest as ApprovalRequest
from toolcell.protocol.hooks import AfterToolCall as AfterToolCall
from toolcell.protocol.hooks import Ask as Ask
from toolcell.protocol.hooks import BeforeToolCall as BeforeToolCall
from toolcell.protocol.hooks import Block as Block
from toolcell.protocol.hooks import Hooks as Hooks
from toolcell.protocol.hooks import Proceed as Proceed
from toolcell.protocol.hooks import ReplaceDetails as ReplaceDetails
from toolcell.tools.by_input import output_by_input as output_by_input
from toolcell.tools.content import ToolResult as ToolResult
from toolcell.tools.decorator import tool as tool
from toolcell.tools.tool import Tool as Tool
from toolcell.tools.tool import ToolContext as ToolContext
