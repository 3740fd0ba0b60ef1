"""Owns the MCP server that `toolcell demo` starts: `python -m toolcell.testing.demo_mcp`.

A warehouse with twenty tools over made-up, fixed data: the same question has the same answer on
every machine, offline.

Above: the demo and its docs, as a child process. Below: `mcp_stdio`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcell.testing.mcp_stdio import (
    INVALID_PARAMS,
    Call,
    RpcError,
    ServedTool,
    StdioServer,
    served,
    structured,
)

_SKU = {"type": "string", "description": "Stock keeping unit, such as A-100"}
_SITE = {"type": "string", "enum": ["berlin", "lyon", "porto"], "description": "Warehouse"}
_COUNT = {"type": "integer", "minimum": 1}
_DAYS = {"type": "integer", "minimum": 1, "maximum": 30, "description": "How many days ahead"}

_ITEMS: dict[str, dict[str, Any]] = {
    f"{group}-{number}": {
        "sku": f"{group}-{number}",
        "name": f"{name} {size}",
        "unitPrice": round(price * factor, 2),
        "weightKg": round(weight * factor, 2),
        "supplier": supplier,
    }
    for group, name, price, weight, supplier in (
        ("A", "Bolt", 0.2, 0.01, "Nordstahl"),
        ("B", "Bearing", 4.5, 0.3, "Rolo"),
        ("C", "Pump", 89.0, 6.5, "Aquamec"),
        ("D", "Sensor", 23.0, 0.1, "Optiq"),
    )
    for number, size, factor in ((100, "small", 1.0), (200, "medium", 1.6), (300, "large", 2.4))
}
_SITES = ("berlin", "lyon", "porto")
_ORDERS: dict[str, dict[str, Any]] = {
    f"O-{number}": {
        "id": f"O-{number}",
        "sku": list(_ITEMS)[number * 5 % len(_ITEMS)],
        "quantity": number % 7 + 1,
        "site": _SITES[number % 3],
        "status": ("open", "packed", "shipped")[number % 3],
    }
    for number in range(1, 25)
}


def _level(sku: str, site: str) -> int:
    """Return a stock level that looks uneven and never changes."""
    return (sum(map(ord, sku + site)) * 37) % 180


def _item(sku: Any) -> dict[str, Any]:
    found = _ITEMS.get(sku)
    if found is None:
        raise RpcError(INVALID_PARAMS, f"no such item: {sku!r}; list_items names them all")
    return found


def _order(ident: Any) -> dict[str, Any]:
    found = _ORDERS.get(ident)
    if found is None:
        raise RpcError(INVALID_PARAMS, f"no such order: {ident!r}; list_orders names them all")
    return found


def _low_stock(a: Mapping[str, Any]) -> Any:
    rows = [{"sku": sku, "site": s, "level": _level(sku, s)} for sku in _ITEMS for s in _SITES]
    return {"items": [row for row in rows if row["level"] < a["below"]]}


def _orders(a: Mapping[str, Any]) -> Any:
    wanted = a.get("status")
    return {"orders": [o for o in _ORDERS.values() if wanted in {None, o["status"]}]}


def _quote(a: Mapping[str, Any]) -> Any:
    net = round(_item(a["sku"])["unitPrice"] * a["quantity"], 2)
    discount = 0.1 if a["quantity"] >= 100 else 0.0
    return {"net": net, "discount": discount, "total": round(net * (1 - discount), 2)}


def _digits_of(text: str) -> int:
    """Return a small number that is the same in every process, unlike `hash`."""
    return sum(map(ord, text)) % 60


def _route(a: Mapping[str, Any]) -> Any:
    distance = (
        0 if a["from"] == a["to"] else 400 + abs(_digits_of(a["from"]) - _digits_of(a["to"])) * 25
    )
    return {"from": a["from"], "to": a["to"], "km": distance, "hours": round(distance / 70, 1)}


def _forecast(a: Mapping[str, Any]) -> Any:
    base = _digits_of(a["site"])
    days = [
        {"day": day, "celsius": (base + day * 7) % 28 - 2, "rain": (base + day) % 3 == 0}
        for day in range(1, a["days"] + 1)
    ]
    return {"site": a["site"], "days": days}


def _demand(a: Mapping[str, Any]) -> Any:
    base = _digits_of(_item(a["sku"])["sku"]) % 9 + 1
    return {"sku": a["sku"], "units": [base + day % 4 for day in range(a["days"])]}


def _value(a: Mapping[str, Any]) -> Any:
    total = sum(item["unitPrice"] * _level(sku, a["site"]) for sku, item in _ITEMS.items())
    return {"site": a["site"], "value": round(total, 2)}


Answer = Callable[[Mapping[str, Any]], Any]
_NO_INPUT: dict[str, Any] = {}
_TOOLS: tuple[tuple[str, str, dict[str, Any], Answer], ...] = (
    ("list_items", "List every item.", _NO_INPUT, lambda _: {"items": list(_ITEMS.values())}),
    ("get_item", "Get one item.", {"sku": _SKU}, lambda a: _item(a["sku"])),
    ("list_sites", "List the warehouses.", _NO_INPUT, lambda _: {"sites": list(_SITES)}),
    (
        "stock_level",
        "How many of an item are in a warehouse.",
        {"sku": _SKU, "site": _SITE},
        lambda a: {"level": _level(_item(a["sku"])["sku"], a["site"])},
    ),
    (
        "total_stock",
        "How many of an item there are in all warehouses.",
        {"sku": _SKU},
        lambda a: {"total": sum(_level(_item(a["sku"])["sku"], site) for site in _SITES)},
    ),
    ("low_stock", "Items below a level.", {"below": _COUNT}, _low_stock),
    ("stock_value", "What the stock of a warehouse is worth.", {"site": _SITE}, _value),
    ("list_orders", "List orders, or those with a status.", _NO_INPUT, _orders),
    ("get_order", "Get one order.", {"id": {"type": "string"}}, lambda a: _order(a["id"])),
    (
        "order_weight",
        "The weight of an order.",
        {"id": {"type": "string"}},
        lambda a: {
            "kg": round(_order(a["id"])["quantity"] * _item(_order(a["id"])["sku"])["weightKg"], 2)
        },
    ),
    (
        "order_total",
        "The price of an order.",
        {"id": {"type": "string"}},
        lambda a: _quote(_order(a["id"])),
    ),
    ("quote", "Price a quantity of an item.", {"sku": _SKU, "quantity": _COUNT}, _quote),
    (
        "supplier_of",
        "Who supplies an item.",
        {"sku": _SKU},
        lambda a: {"supplier": _item(a["sku"])["supplier"]},
    ),
    (
        "list_suppliers",
        "List the suppliers.",
        _NO_INPUT,
        lambda _: {"suppliers": sorted({item["supplier"] for item in _ITEMS.values()})},
    ),
    (
        "supplier_lead_time",
        "Days a supplier needs.",
        {"supplier": {"type": "string"}},
        lambda a: {"days": _digits_of(a["supplier"]) % 12 + 2},
    ),
    ("route", "Distance between two warehouses.", {"from": _SITE, "to": _SITE}, _route),
    (
        "shipping_cost",
        "What it costs to ship a weight.",
        {"kg": {"type": "number"}, "km": {"type": "number"}},
        lambda a: {"cost": round(4.9 + a["kg"] * 0.3 + a["km"] * 0.02, 2)},
    ),
    ("weather", "Forecast at a warehouse.", {"site": _SITE, "days": _DAYS}, _forecast),
    ("demand_forecast", "Expected sales per day.", {"sku": _SKU, "days": _DAYS}, _demand),
    (
        "opening_hours",
        "When a warehouse is open.",
        {"site": _SITE},
        lambda a: {"site": a["site"], "opens": "06:00", "closes": "22:00"},
    ),
)


def tools() -> list[ServedTool]:
    """Return the twenty tools."""
    made = [served(name, text, props, _answering(answer)) for name, text, props, answer in _TOOLS]
    status = {"status": {"type": "string", "enum": ["open", "packed", "shipped"]}}
    listed = served("list_orders", _TOOLS[7][1], status, _answering(_orders), required=())
    return [listed if tool.entry["name"] == "list_orders" else tool for tool in made]


def _answering(answer: Answer) -> Callable[[Mapping[str, Any], Call], Mapping[str, Any]]:
    def run(arguments: Mapping[str, Any], _: Call) -> Mapping[str, Any]:
        try:
            return structured(answer(arguments))
        except (KeyError, TypeError) as error:
            raise RpcError(INVALID_PARAMS, f"bad arguments: {error!r}") from error

    return run


def main() -> None:
    """Serve until stdin ends."""
    StdioServer("warehouse", "1.0", tools()).serve()


if __name__ == "__main__":
    main()
