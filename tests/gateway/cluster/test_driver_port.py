"""The real port gives its driver turns: soon, or at an instant, and never one within another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from pilotlight_core.bus import Handler, connect
from pilotlight_gateway.cluster.driver_port import SOON, BusDriverPort


class Turning:
    """A driver that counts its turns, and wishes for more of them as long as a test lets it."""

    def __init__(self, port: BusDriverPort) -> None:
        self._port = port
        self.turns = 0
        self.inside = 0
        self.turned = asyncio.Event()

    def handlers(self) -> Mapping[str, Handler]:
        return {}

    def take_turn(self) -> None:
        self.inside += 1
        assert self.inside == 1
        self.turns += 1
        self._port.wake_at(SOON)  # what comes up in a turn is this turn's
        self.turned.set()
        self.inside -= 1

    def reconnected(self) -> None:
        raise AssertionError("the bus was never away")

    async def next(self) -> None:
        self.turned.clear()
        await asyncio.wait_for(self.turned.wait(), 30)


async def test_a_driver_has_one_turn_for_all_that_came_up(server_url: str) -> None:
    """One at the start; none when nothing asks for it; none when it runs no more."""
    async with connect(server_url, name="port") as bus:
        port = BusDriverPort(bus)
        driver = Turning(port)
        async with port.driving(driver):
            await driver.next()
            for _ in range(5):
                port.wake_at(SOON)
            await driver.next()
            for _ in range(5):
                await asyncio.sleep(0)
            assert driver.turns == 2
        port.wake_at(SOON)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert driver.turns == 2


async def test_the_earliest_instant_holds(server_url: str) -> None:
    """A later wish does not put it off."""
    async with connect(server_url, name="port") as bus:
        port = BusDriverPort(bus)
        driver = Turning(port)
        async with port.driving(driver):
            await driver.next()
            instant = time.monotonic() + 0.02
            port.wake_at(instant + 3_600.0)
            port.wake_at(instant)
            port.wake_at(instant + 60.0)
            await driver.next()
            assert time.monotonic() >= instant - 0.001


class Failing(Turning):
    """Its first turn raises before it asks for another."""

    def take_turn(self) -> None:
        if not self.turns:
            self.turns += 1
            raise KeyError("what is this")
        super().take_turn()


async def test_a_driver_whose_turn_went_wrong_gets_another(server_url: str) -> None:
    """Nothing else wakes it: what waits for its timers would wait for ever."""
    async with connect(server_url, name="port") as bus:
        port = BusDriverPort(bus)
        driver = Failing(port)
        async with port.driving(driver):
            await driver.next()
            assert driver.turns == 2
