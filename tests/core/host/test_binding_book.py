"""The bindings over a real bus: written by one process, known to others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import LATELY, BindingBook, MemoryBindings
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.bindings import Binding, Bound, Unbound
from tests.builders.nodes import binding
from tests.waiting import until


@pytest.fixture
def region() -> str:
    return f"r{token(6)}"


@pytest.fixture
async def book(bus: Bus, region: str) -> AsyncIterator[BindingBook]:
    async with BindingBook(bus, region=region) as book:
        yield book


async def test_a_binding_is_known_here_at_once_and_elsewhere_soon(book: BindingBook, other: Bus, region: str) -> None:
    """Until it is ended; then it is still recognised for a while."""
    bound = binding()
    told: list[Binding] = []
    async with BindingBook(other, region=region) as elsewhere:
        elsewhere.on_bound.append(told.append)
        await book.bind(bound)
        assert book.live("c1") == bound
        await until(lambda: elsewhere.live("c1") == bound)
        assert told == [bound]

        await book.end(bound)
        assert book.live("c1") is None
        await until(lambda: elsewhere.live("c1") is None)
        assert book.lately("c1") == elsewhere.lately("c1") == bound


async def test_another_process_begins_with_what_is_bound(book: BindingBook, other: Bus, region: str) -> None:
    """And another region has bindings of its own."""
    await book.bind(binding())
    await book.bind(gone := binding("c2"))
    await book.end(gone)

    async with BindingBook(other, region=region) as elsewhere, BindingBook(other, region=f"{region}x") as far:
        assert list(elsewhere.bound) == ["c1"]
        assert not far.bound


async def test_the_ledger_hears_of_it_in_order(book: BindingBook, bus: Bus, region: str) -> None:
    """In the stream of usage, each once, however often it is said."""
    bound = binding()
    await book.bind(bound)
    await book.bind(bound)
    await book.end(bound)
    await book.end(bound)

    stream = bus.read_stream(subjects.USAGE_STREAM, subjects.bindings(region, "n1"))
    assert [stored.message async for stored in stream] == [Bound(binding=bound), Unbound(container="c1", node="n1")]


async def test_what_is_remembered_of_ended_ones_is_bounded(book: BindingBook) -> None:
    """The oldest are forgotten."""
    for number in range(LATELY + 1):
        book._add(binding(f"c{number}"))
        book._remove(f"c{number}")

    assert book.lately("c0") is None
    assert book.lately("c1") is not None


async def test_what_is_bound_on_other_nodes_is_known(book: BindingBook) -> None:
    """A new leader asks for what the nodes that it has heard cannot tell it."""
    await book.bind(binding("c1"))
    await book.bind(binding("c2", node="n2"))

    assert [each.container for each in book.not_on({"n1": 0})] == ["c2"]


def test_the_fake_says_what_is_bound() -> None:
    """As the real one does."""
    fake = MemoryBindings()
    fake.bind(binding())
    assert fake.live("c1") == fake.lately("c1") == binding()
    fake.end("c1")
    assert (fake.live("c1"), fake.lately("c1")) == (None, binding())
