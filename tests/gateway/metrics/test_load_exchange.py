"""The loads of all gateways at each of them."""

from __future__ import annotations

from typing import Any

from pilotlight_core.bus import connect
from pilotlight_core.host.metrics.loop_watch import LoopWatch
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.scheduling import GatewayLoad
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.metrics.load_exchange import (
    GATEWAYS_AT_MOST,
    SILENT_S,
    LoadBook,
    LoadExchange,
    MeasuredGateway,
)
from tests.waiting import until


def load(gateway: str, **more: Any) -> GatewayLoad:
    fields: dict[str, Any] = {
        "name": gateway, "requests_per_s": 1.0, "loop_lag_s": 0.001, "body_bytes": 5, "body_bytes_limit": 10,
    }  # fmt: skip
    return GatewayLoad(gateway=gateway, **fields | more)


def test_the_last_load_of_each_counts_while_it_tells_one() -> None:
    """By name; one that is silent is not there."""
    book = LoadBook()
    book.on_load(load("b"), 0.0)
    book.on_load(load("a", requests_per_s=3.0), 1.0)
    book.on_load(load("a", requests_per_s=4.0), 3.0)
    assert [(one.gateway, one.requests_per_s, age_s) for one, age_s in book.known(5.0)] == [
        ("a", 4.0, 2.0), ("b", 1.0, 5.0),
    ]  # fmt: skip
    assert [one.gateway for one, _ in book.known(SILENT_S + 0.5)] == ["a"]


def test_a_book_has_a_bound() -> None:
    """Those that are silent make room; where none is, a further one is not taken in."""
    book = LoadBook()
    for number in range(GATEWAYS_AT_MOST + 5):
        book.on_load(load(f"g{number:04}"), 0.0)
    assert len(book.known(0.0)) == GATEWAYS_AT_MOST
    book.on_load(load("late"), SILENT_S + 1.0)
    assert [one.gateway for one, _ in book.known(SILENT_S + 1.0)] == ["late"]


async def test_each_gateway_hears_of_all(server_url: str) -> None:
    """And of itself, also alone."""
    region, budget = token(6), ByteBudget(limit=100)
    budget.take(7, "acme")

    def exchange(bus: Any, book: LoadBook, name: str) -> LoadExchange:
        return LoadExchange(
            bus, book, MeasuredGateway(name=name, process=f"{name}.1", region=region), budget, lambda: 3
        )

    one, other, watch = LoadBook(), LoadBook(), LoopWatch(0.0)
    async with (
        connect(server_url, name="load-one") as first,
        connect(server_url, name="load-other") as second,
        exchange(first, one, "one").running(watch, lambda: 0),
        exchange(second, other, "other").running(watch, lambda: 0),
    ):
        await until(lambda: len(one._loads) == len(other._loads) == 2)

    told = one._loads["other.1"][0]
    assert (told.name, told.calls, told.body_bytes, told.body_bytes_limit) == ("other", 3, 7, 100)
