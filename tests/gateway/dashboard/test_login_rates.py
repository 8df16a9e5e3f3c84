"""Who tries to log in is counted by address, and few try at a time."""

from __future__ import annotations

from contextlib import AsyncExitStack
from ipaddress import ip_network

import pytest

from pilotlight_gateway.dashboard import login_rates
from pilotlight_gateway.dashboard.login_rates import LoginRates, LoginRefused

PROXY = (ip_network("10.0.0.0/8"),)


async def test_an_address_tries_a_few_times_and_then_once_a_second() -> None:
    """Others, and proxies with many behind them, are not held back by it."""
    now = [0.0]
    rates = LoginRates(lambda: now[0], PROXY)

    async def tries(address: str, times: int) -> int:
        done = 0
        for _ in range(times):
            try:
                async with rates.taking(address):
                    done += 1
            except LoginRefused:
                break
        return done

    assert await tries("192.0.2.1", 30) == 20
    assert await tries("192.0.2.2", 1) == 1
    assert await tries("10.1.1.1", 30) == 30
    now[0] = 3.0
    assert await tries("192.0.2.1", 30) == 3


async def test_more_than_may_wait_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_rates, "WAIT_AT_MOST", 2)
    rates = LoginRates(lambda: 0.0, PROXY)
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(rates.taking("10.0.0.1"))
        with pytest.raises(LoginRefused, match="at once"):
            await held.enter_async_context(rates.taking("10.0.0.1"))
    async with rates.taking("10.0.0.1"):
        pass
