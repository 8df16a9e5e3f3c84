"""The traces in memory, as other tests use them."""

from __future__ import annotations

from collections import Counter

import pytest

from pilotlight_core.bus import BusDown
from pilotlight_gateway.erasure.tenant_traces import MemoryTraces


async def test_traces_go_once_and_of_one_tenant() -> None:
    """They are counted before; one that fails in the middle leaves the rest."""
    traces = MemoryTraces(kept={"acme": Counter(apps=2, jobs=1), "rival": Counter(apps=1)}, fails=True)
    assert await traces.count("acme") == {"apps": 2, "jobs": 1}
    with pytest.raises(BusDown):
        await traces.erase("acme")
    assert await traces.count("acme") == {"jobs": 1}
    traces.fails = False
    assert await traces.erase("acme") == {"jobs": 1}
    assert await traces.erase("acme") == {}
    assert await traces.count("rival") == {"apps": 1}
