"""A function whose own document is held to what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pilotlight import App, concurrent

app = App("judged")


@dataclass
class Order:
    """What is ordered, and how much of it."""

    item: str
    count: int = 1


@dataclass
class Bill:
    """What is to be paid."""

    lines: list[str]
    total: float


@app.gpu_function(scaledown_window=60.0)
@concurrent(max_inputs=16)
async def bill(
    orders: list[Order], currency: Literal["EUR", "USD"] = "EUR", discount: float | None = None, note: str = ""
) -> Bill:
    """Add up orders."""
    lines = [f"{order.count} x {order.item} {currency} {discount} {note}" for order in orders]
    return Bill(lines=lines, total=float(len(lines)))
