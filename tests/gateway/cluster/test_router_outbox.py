"""Mail between gateways arrives, in order, however large it is."""

from __future__ import annotations

from pilotlight_core.bus import connect
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.scheduling import Dropped, ToHome, ToOrigin, Withdraw
from pilotlight_gateway.cluster.driver_port import BusDriverPort
from pilotlight_gateway.cluster.router import ITEMS, Outbox
from tests.waiting import until


async def test_what_does_not_fit_one_message_goes_in_several(server_url: str) -> None:
    """Many calls wait when a version cannot be loaded, and each hears of it with the whole traceback."""
    region, heard = f"r{token(8)}", list[str]()
    error = RemoteError("ImportError", "x" * 4_000, "y" * 32_000)
    async with connect(server_url, name="origin") as origin, connect(server_url, name="home") as home:

        def hear(_: str, message: object, __: str) -> None:
            assert isinstance(message, ToOrigin)
            heard.extend(dropped.call_id for dropped in message.dropped)

        await origin.subscribe(subjects.to_origin(region, "gw1"), hear)
        await origin.flush()
        mailbox, calls = Outbox(BusDriverPort(home), region), [f"call_{n}" for n in range(2 * ITEMS + 10)]
        for call in calls:
            mailbox.add_dropped(Dropped(call_id=call, gateway="gw1", code="load_failed", detail="no", error=error))
        mailbox.flush()

        await until(lambda: len(heard) == len(calls))
        assert heard == calls


async def test_what_comes_up_in_one_turn_is_one_message(server_url: str) -> None:
    """For each shard of a home."""
    region, heard = f"r{token(8)}", list[tuple[int, int]]()
    async with connect(server_url, name="home") as home, connect(server_url, name="origin") as origin:

        def hear(_: str, message: object, __: str) -> None:
            assert isinstance(message, ToHome)
            heard.append((message.shard, len(message.items)))

        await home.subscribe(subjects.to_home(region, "gw1"), hear)
        await home.flush()
        mailbox = Outbox(BusDriverPort(origin), region)
        for n in range(20):
            mailbox.add_for_home("gw1", n % 2, Withdraw(f"call_{n}"))
        mailbox.flush()

        await until(lambda: len(heard) == 2)
        assert heard == [(0, 10), (1, 10)]
