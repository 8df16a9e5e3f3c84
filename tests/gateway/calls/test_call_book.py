"""Which calls a gateway knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pilotlight_core.model.errors import Cancelled, Conflict, TooMuch
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_book import CallBook
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.live_calls import AwaitedCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.prepared_call import PreparedCall
from tests.builders.specs import function_spec, method, version_record

METHOD = method()
VERSION = version_record(function_spec("f", METHOD), app="a")


def live_maker() -> Callable[[str, str, str], AwaitedCall]:
    """Makes calls of a tenant, with an id and their client's."""
    loop = asyncio.get_running_loop()

    def live(tenant: str, id: str, client_id: str) -> AwaitedCall:  # noqa: A002
        call = PreparedCall(
            call_id=id, client_id=client_id, tenant=tenant, version=VERSION, method=METHOD, input=b"",
            priority=Priority.STANDARD, deadline_at=10.0, arrived_at=0.0, stream=False,
        )  # fmt: skip
        answer: asyncio.Future[CallResult] = loop.create_future()
        return AwaitedCall(call, 0, Origin(call, "gw1", 0.0), answer, ByteBudget(limit=1))

    return live


async def test_a_busy_tenant_does_not_evict_what_others_may_ask_for() -> None:
    """The quiet one still finds its call, by both ids; of the busy one's calls the oldest are gone, with their ids."""
    book, live = CallBook(remembered=5), live_maker()
    for tenant, count in (("quiet", 1), ("busy", 20)):
        for number in range(count):
            one = live(tenant, f"{tenant}-{number}", f"cid-{number}")
            book.enter(one)
            one.fail(Cancelled("x"))
            book.leave(one, 1.0)

    for name in ("quiet-0", "cid-0"):
        _, status = book.find("quiet", name, 2.0)
        assert status is not None
        assert status.id == "quiet-0"
    found = [number for number in range(20) if book.find("busy", f"busy-{number}", 2.0)[1] is not None]
    assert found == [16, 17, 18, 19]
    assert book.find("busy", "quiet-0", 2.0) == (None, None)
    book.enter(live("busy", "busy-21", "cid-0"))  # the id of a call that is forgotten may stand for another


async def test_a_call_that_goes_to_another_function_is_the_same_call() -> None:
    """It enters again under both of its ids; its last state is the one that is kept, once."""
    book, live = CallBook(remembered=2), live_maker()
    first, second = live("acme", "call-1", "cid-1"), live("acme", "call-1", "cid-1")
    book.enter(first)
    first.fail(TooMuch("no", code="queue_full"))
    book.leave(first, 1.0)
    book.enter(second)
    for number in (2, 3):  # it is not forgotten while it is live, though what it was before is
        other = live("acme", f"call-{number}", f"cid-{number}")
        book.enter(other)
        book.leave(other, 2.0)
    assert book.find("acme", "cid-1", 3.0)[0] is second
    with pytest.raises(Conflict):
        book.enter(live("acme", "call-4", "cid-1"))
    book.leave(second, 3.0)
    assert book.find("acme", "call-1", 4.0)[1] is not None
    assert len(book._ended) == 2
    book._ended.check_integrity()
