"""Owns `toolcell qa`: scenarios that show what is promised.

Above: `cli.main`. Below: `qa`, whose gateway and mock endpoint need Starlette and Uvicorn (extra).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from cyclopts import App, Parameter

from toolcell.base.jsontext import dumps
from toolcell.cli.console import (
    DONE,
    FAILED,
    Progress,
    print_json,
    print_table,
    print_text,
    printable,
)
from toolcell.cli.gateway_command import require_extra
from toolcell.config.edit import write_atomically
from toolcell.errors import ConfigError

app = App(name="qa", help="Scenarios that show what toolcell promises.")


@app.command
def suite(
    *,
    scenario: Literal["tool-search-gateway-e2e"] = "tool-search-gateway-e2e",
    provider_mode: Literal["mock-openai"] = "mock-openai",
    sizes: Annotated[str, Parameter(help="Tools of the fake plugin, by commas.")] = "40,300,1000",
    lanes: Annotated[str, Parameter(help="Lanes to run, by commas; all when empty.")] = "",
    report: Annotated[Path | None, Parameter(help="Write the report here, as JSON.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run a scenario against a mock provider; the exit code is 1 when a check fails.

    `tool-search-gateway-e2e` offers one large fake plugin directly, through each mode of Tool
    Search and through code mode, over a real gateway, and compares requests and session records.
    """
    del scenario, provider_mode  # one of each so far; named so that scripts can say what they mean
    require_extra()
    from toolcell.qa.tool_search_gateway import (  # noqa: PLC0415 - an optional extra
        chosen_lanes,
        tool_search_gateway,
    )

    counts, progress = _sizes(sizes), Progress()
    wanted = chosen_lanes([name.strip() for name in lanes.split(",") if name.strip()])

    async def run() -> Any:
        with progress.running("starting"):
            return await tool_search_gateway(wanted, counts, say=progress.say)

    found = anyio.run(run)
    document = found.to_dict()
    if report is not None:
        write_atomically(report, dumps(document) + "\n")
    if as_json:
        print_json(document)
    else:
        _show(document)
    return DONE if found.ok else FAILED


def _sizes(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        msg = f"--sizes takes positive numbers, such as 40,300; got {text!r}"
        raise ConfigError(msg)
    return counts


def _show(document: dict[str, Any]) -> None:
    columns = {
        "tools": "tools",
        "lane": "lane",
        "firstRequestBytes": "first request, bytes",
        "firstRequestTokens": f"tokens ({document['tokenEstimate']})",
        "allRequestBytes": "all requests, bytes",
        "turns": "turns",
        "calls": "calls",
    }
    print_table(list(columns.values()), [_cells(row, list(columns)) for row in document["lanes"]])
    checks = document["checks"]
    for check in checks:
        if not check["ok"]:
            place = f"{check['lane']} with {check['tools']} tools"
            print_text(printable(f"FAILED {check['check']}. {check['sentence']} ({place}): "))
            print_text(printable(f"  {check['seen']}"))
    held = sum(check["ok"] for check in checks)
    print_text(f"{held} of {len(checks)} checks hold")


def _cells(row: dict[str, Any], names: Sequence[str]) -> list[str]:
    return [str(row[name]) for name in names]
