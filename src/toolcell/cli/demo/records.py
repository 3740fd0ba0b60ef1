"""Owns the demo's data: a small freight company, the same on every run.

Above: the demo plugin. Below: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Fields = dict[str, str]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """One kind of record.

    Attributes:
        noun: Singular name, used in tool names.
        plural: For descriptions.
        fields: Field name to JSON type, beside `id`.
        count: How many rows there are.
    """

    noun: str
    plural: str
    fields: Fields
    count: int


TABLES: tuple[Table, ...] = (
    Table(
        "shipment",
        "shipments",
        {"order": "string", "customer": "string", "tons": "number", "paid": "boolean"},
        24,
    ),
    Table("invoice", "invoices", {"customer": "string", "amount": "number", "due": "string"}, 18),
    Table("customer", "customers", {"name": "string", "country": "string"}, 12),
    Table("carrier", "carriers", {"name": "string", "mode": "string", "rating": "number"}, 8),
    Table("warehouse", "warehouses", {"city": "string", "capacity": "integer"}, 6),
    Table("pallet", "pallets", {"warehouse": "string", "kilograms": "number"}, 30),
    Table("route", "routes", {"from": "string", "to": "string", "hours": "number"}, 14),
    Table("driver", "drivers", {"name": "string", "licence": "string"}, 10),
    Table("vehicle", "vehicles", {"plate": "string", "payload": "number"}, 9),
    Table("order", "orders", {"customer": "string", "lines": "integer"}, 20),
    Table("claim", "damage claims", {"shipment": "string", "amount": "number"}, 5),
    Table("contract", "contracts", {"carrier": "string", "until": "string"}, 7),
    Table("tariff", "tariffs", {"lane": "string", "perTon": "number"}, 11),
    Table("container", "containers", {"size": "string", "sealed": "boolean"}, 16),
    Table("booking", "dock bookings", {"dock": "string", "hour": "integer"}, 13),
)

PORTS = ("Hamburg", "Rotterdam", "Valencia", "Gdansk", "Piraeus", "Antwerp")
CITIES = ("Leipzig", "Lyon", "Porto", "Graz", "Turin", "Malmo")
NAMES = ("Ada", "Berk", "Chen", "Dara", "Emil", "Fatou", "Goran", "Hana")
_WORDS: dict[str, tuple[str, ...]] = {
    "port": PORTS,
    "city": CITIES,
    "from": CITIES,
    "to": PORTS,
    "name": NAMES,
    "country": ("DE", "FR", "ES", "PL", "GR"),
    "mode": ("road", "rail", "sea"),
    "size": ("20ft", "40ft"),
    "licence": ("C", "CE"),
    "dock": ("A1", "A2", "B1"),
}
_REFERENCES = {"customer", "carrier", "warehouse", "shipment"}


def rows(table: Table) -> list[Row]:
    """Return the table's rows, made anew."""
    return [
        {
            "id": f"{table.noun}-{number + 1}",
            **{name: _value(name, kind, number) for name, kind in table.fields.items()},
        }
        for number in range(table.count)
    ]


def _value(name: str, kind: str, number: int) -> Any:
    match kind:
        case "boolean":
            return number % 3 == 0
        case "integer":
            return 4 + (number * 7) % 20
        case "number":
            return round(1.5 + (number * 37 % 190) / 10, 1)
    return _text(name, number)


def _text(name: str, number: int) -> str:
    if name == "order":
        return f"O-{number + 1}"
    if name in _REFERENCES:
        return f"{name}-{number % 5 + 1}"
    if name in _WORDS:
        words = _WORDS[name]
        return words[number % len(words)]
    return f"2027-0{number % 9 + 1}-15" if name in {"due", "until"} else f"{name}-{number + 1}"
