"""A process that holds a lease and prints its state, for tests that pause it.

`python lease_holder.py URL KEY HOLDER TTL` prints `held EPOCH`, then `valid` repeatedly, and `lost` after a loss.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress

from pilotlight_core.bus import connect
from pilotlight_core.host import telemetry

SAY_EVERY_S = 0.05


async def main(url: str, key: str, holder: str, ttl: float) -> None:
    async with connect(url, name=holder) as bus:
        lease = bus.lease(key, holder, ttl)
        print("held", await lease.acquire(), flush=True)
        while not lease.lost.is_set():
            print("valid" if lease.valid(time.monotonic()) else "invalid", flush=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(lease.lost.wait(), SAY_EVERY_S)
        print("lost", flush=True)


if __name__ == "__main__":
    telemetry.setup("holder")
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))
