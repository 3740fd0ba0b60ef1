"""Owns what the demo's scripted model does: the same question, with direct tools and in Code Mode.

Above: the demo. Below: `protocol.messages`, `providers.scripted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolcell.base.jsontext import loads
from toolcell.protocol.messages import Message, ModelRequest
from toolcell.providers.scripted import Step, tool_call

QUESTION = (
    "Which unpaid shipments weigh more than 10 tons, what are their warehouse orders worth, and is "
    "the credit of those customers good?"
)

PROGRAM = """\
const shipments = await shipment_list({paid: false});
const heavy = shipments.filter((shipment) => shipment.tons > 10);
const [orderTotal] = await catalog.search("price of a warehouse order", {limit: 1});
const totals = await Promise.all(heavy.map(({order}) => orderTotal({id: order})));
const owed = heavy.map((shipment, index) => ({
  shipment: shipment.id,
  customer: shipment.customer,
  worth: totals[index].structuredContent.total,
}));
text(`${owed.length} of ${shipments.length} unpaid shipments are heavy`);
const customers = [...new Set(owed.map(({customer}) => customer))];
const credit = await credit_check({customers});
return {
  owed,
  worth: Math.round(owed.reduce((sum, row) => sum + row.worth, 0) * 100) / 100,
  badCredit: credit.filter(({good}) => !good).map(({customer}) => customer),
};
"""


def code_mode_steps() -> list[Step]:
    """Return the scripted turns in Code Mode: run the program, resume it, answer."""

    def resume_or_answer(request: ModelRequest) -> Any:
        result = _last_result(request)
        if result["status"] == "waiting":
            return tool_call("wait", {"runId": result["runId"]})
        return _answer(result["value"])

    first = tool_call("exec", {"title": "Heavy unpaid shipments", "code": PROGRAM})
    return [first, *[resume_or_answer] * 4]


def direct_steps() -> list[Step]:
    """Return the scripted turns with direct tools: a turn for each thing that must be known."""

    def totals(request: ModelRequest) -> Any:
        return [
            tool_call("warehouse__order_total", {"id": row["order"]})
            for row in _heavy(_last_result(request))
        ]

    def credit(request: ModelRequest) -> Any:
        rows = _heavy(_result_of(request.messages, 0))
        return tool_call("credit_check", {"customers": sorted({row["customer"] for row in rows})})

    def answer(request: ModelRequest) -> Any:
        rows = _heavy(_result_of(request.messages, 0))
        worth = [_worth(_result_of(request.messages, number + 1)) for number in range(len(rows))]
        checked = _last_result(request)
        return _answer(
            {
                "owed": rows,
                "worth": round(sum(worth), 2),
                "badCredit": [row["customer"] for row in checked if not row["good"]],
            }
        )

    return [tool_call("shipment_list", {"paid": False}), totals, credit, answer]


def _answer(value: dict[str, Any]) -> str:
    bad = ", ".join(sorted(value["badCredit"])) or "nobody"
    return (
        f"{len(value['owed'])} unpaid shipments weigh more than 10 tons; their orders are worth "
        f"{value['worth']}. Bad credit: {bad}."
    )


def _heavy(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["tons"] > 10]


def _results(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if message.role == "tool"]


def _result_of(messages: Sequence[Message], index: int) -> Any:
    return _json_in(_results(messages)[index])


def _last_result(request: ModelRequest) -> Any:
    return _json_in(_results(request.messages)[-1])


def _json_in(text: str) -> Any:
    """Return the JSON in a result as a model reads it: alone, or wrapped as untrusted text."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        if not line.startswith(("{", "[")):
            continue
        value = loads(line)
        if not isinstance(value, dict):
            return value
        found.update(value)
    return found


def _worth(result: Any) -> float:
    return float(result.get("structuredContent", result)["total"])
