"""Where clients reach each gateway, so that an answer can name the home of its function.

A call that comes to its function's home crosses to no other gateway. A client or a load balancer that learns the home's
address can send later calls there; who does not is served as well. An address that is out of date costs a crossing.
"""

from __future__ import annotations

from types import TracebackType

from pilotlight_core.bus import Bus, KvEntry
from pilotlight_core.model.subjects import PLATFORM_BUCKET
from pilotlight_gateway.cluster.shard_table import ShardTable

LONGEST_URL = 200
"""Characters of an address: it is in the head of answers."""
PROCESSES_KNOWN = 256


class GatewayAddresses:
    """Tells `ShardTable` the addresses: gateways write their own below one prefix, and follow those of others.

    `url`: where clients reach this gateway, as people type it; "": nowhere, so that no answer names it.
    """

    def __init__(self, bus: Bus, table: ShardTable, *, region: str, name: str, url: str) -> None:
        self._kv = bus.kv(PLATFORM_BUCKET)
        self._prefix = f"address.{region}."
        self._mirror = bus.mirror(PLATFORM_BUCKET, self._prefix)
        self._table = table
        self._name = name
        self._url = url
        table.address_of = self.address_of
        self._of_process: dict[str, bytes] = {}
        """Of the gateways that live, as far as they were asked for."""

    async def __aenter__(self) -> None:
        """Say the own address, and follow those of others until the block ends.

        Raises:
            BusError: the bus does not take it.
        """
        await self._kv.put(f"{self._prefix}{self._name}", self._url.encode())
        self._mirror.on_change.append(self._changed)
        await self._mirror.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._mirror.__aexit__(kind, error, trace)

    def _changed(self, _key: str, _entry: KvEntry | None) -> None:
        self._of_process.clear()

    def address_of(self, process: str) -> bytes:
        """Where clients reach a gateway's process; b"" if nobody knows."""
        address = self._of_process.get(process) or self._find(process)
        if address and len(self._of_process) < PROCESSES_KNOWN:
            self._of_process[process] = address
        return address

    def _find(self, process: str) -> bytes:
        name = next((member.name for member in self._table.members if member.instance == process), "")
        entry = self._mirror.get(f"{self._prefix}{name}")
        # Whoever has a gateway's credentials may write there, and it goes into the head of answers.
        return entry.value if entry is not None and is_address(entry.value) else b""


def is_address(url: bytes) -> bool:
    """Whether it may stand in the head of an answer: printable, without spaces, and not too long."""
    return url.startswith((b"http://", b"https://")) and len(url) <= LONGEST_URL and all(33 <= c < 127 for c in url)
