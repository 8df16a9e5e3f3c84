"""The bucket SCALING: what a leader remembers of each function, for the leaders after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from pilotlight_autoscaler.policy.prediction.function_memory import MINUTE_S, FunctionMemory, read_record
from pilotlight_core.bus import Bus, BusError
from pilotlight_core.bus.reader import StreamCursor
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.subjects import SCALING_BUCKET

READ_S = 20.0
"""All of them are read within this, or it is tried again."""
AT_ONCE = 8
"""Records that are taken over before others have their turn: some milliseconds."""
Knows = Callable[[str, int], bool]
"""Whether as much is known of a function, by name, as a record of so many minutes says."""

log = structlog.get_logger()


def knows_nothing(_function: str, _minutes: int) -> bool:
    """Of a controller that has just begun."""
    return False


class MemoryStore:
    """Of one region. Nothing that cannot be read or written now stops a controller: it learns anew.

    Of tenants who were erased, as `is_erased` says, nothing is stored any more.
    """

    def __init__(self, bus: Bus, *, region: str, is_erased: Callable[[str], bool]) -> None:
        self._is_erased = is_erased
        self._bus = bus
        self._kv = bus.kv(SCALING_BUCKET)
        self._prefix = f"{region}."

    async def read(self, at: float, knows: Knows = knows_nothing) -> dict[str, FunctionMemory]:
        """All that is stored, by `tenant:app.function`, but for what is known; `at` is in unix seconds.

        There may be thousands, and each takes a while to be taken over: in between others have their turn.

        Raises:
            BusError: it cannot be read now. TimeoutError: not within `READ_S`.
        """
        start = key_subject(SCALING_BUCKET, self._prefix)
        cursor = StreamCursor(self._bus, bucket_stream(SCALING_BUCKET), f"{start}>")
        found: dict[str, FunctionMemory] = {}
        async with asyncio.timeout(READ_S):
            while True:
                page = await cursor.read()
                for number, record in enumerate(page.records):
                    self._keep(found, record.subject[len(start) :], record.data, at, knows)
                    if number % AT_ONCE == 0:
                        await asyncio.sleep(0)
                if not page.pending:
                    return found

    async def write(self, records: Mapping[str, bytes]) -> set[str]:
        """Store what is remembered of functions, by name; those that could not be stored now."""
        names = [name for name in records if not self._is_erased(name.partition(":")[0])]
        done = await asyncio.gather(*(self._write(name, records[name]) for name in names))
        return {name for name, stored in zip(names, done, strict=True) if not stored}

    async def _write(self, function: str, record: bytes) -> bool:
        try:
            await self._kv.put(self._prefix + function.replace(":", "."), record)
        except BusError as error:
            log.warning("what is remembered of a function is stored later", function=function, error=repr(error))
            return False
        return True

    def _keep(self, found: dict[str, FunctionMemory], key: str, value: bytes, at: float, knows: Knows) -> None:
        tenant, _, function = key.partition(".")
        name = f"{tenant}:{function}"
        try:
            record = read_record(value)
            if not knows(name, record.minutes):
                found[name] = FunctionMemory(MINUTE_S, at, record)
        except (msgspec.MsgspecError, ValueError) as error:
            log.warning("what was remembered of a function cannot be read", function=key, error=str(error))
