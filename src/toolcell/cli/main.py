"""Owns the command line as a whole: its commands, its exit codes, how errors are shown.

Above: the `toolcell` script. Below: one module for each command.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Token, UnknownOptionError, UnusedCliTokensError

from toolcell.base.version import VERSION
from toolcell.cli import (
    approvals_command,
    config_command,
    mcp_command,
    qa_command,
    sessions_command,
    tools_command,
)
from toolcell.cli.agent_command import agent
from toolcell.cli.console import FAILED, MISUSED, print_error
from toolcell.cli.demo.command import demo
from toolcell.cli.doctor_command import doctor
from toolcell.cli.exec_command import exec_
from toolcell.cli.gateway_command import gateway
from toolcell.cli.replay_command import replay
from toolcell.errors import ConfigError, ToolcellError

app = App(
    name="toolcell",
    help="Code Mode and Tool Search for AI agents.",
    version=VERSION,
    result_action="return_value",
    help_format="markdown",
)
app.command(exec_, name="exec")
app.command(agent)
app.command(approvals_command.app)
app.command(config_command.app)
app.command(demo)
app.command(doctor)
app.command(gateway)
app.command(mcp_command.app)
app.command(qa_command.app)
app.command(replay)
app.command(sessions_command.app)
app.command(tools_command.app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        result = app(
            sys.argv[1:] if arguments is None else list(arguments),
            exit_on_error=False,
            print_error=False,
        )
    except CycloptsError as error:
        command = " ".join(("toolcell", *(error.command_chain or ())))
        print_error(f"{_said(error)}\nTry '{command} --help'.")
        return MISUSED
    except ConfigError as error:
        print_error(error.message)
        return MISUSED
    except ToolcellError as error:
        print_error(error.message)
        return FAILED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return FAILED
    return result if isinstance(result, int) else 0


def _said(error: CycloptsError) -> str:
    """Say what is wrong; of words left over, the misspelt option that caused it.

    A text may begin with a hyphen, so a misspelt option is taken for it and its value is left over.
    """
    if not isinstance(error, UnusedCliTokensError) or error.app is None:
        return str(error)
    known = error.app.assemble_argument_collection()
    names = {name for argument in known for name in argument.names}
    for word in error.root_input_tokens or ():
        if word.startswith("--") and word.partition("=")[0] not in names:
            token = Token(keyword=word, value="", source="cli")
            unknown = UnknownOptionError(token=token, argument_collection=known)
            unknown.verbose = False
            return str(unknown)
    return f"unexpected: {shlex.join(error.unused_tokens or ())}; put several words into quotes."
