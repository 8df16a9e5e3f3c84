"""Keys and values with compare-and-set, on a stream that keeps the last message per subject."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import NamedTuple

import structlog

from pilotlight_core.bus.bus_errors import KeyConflict, KeyExists, StoreRefused, WrongRevision
from pilotlight_core.bus.conflict_retry import TRIES, retry_conflicts
from pilotlight_core.bus.jetstream import READ_TIMEOUT, JetStream, StreamMessage, StreamPage
from pilotlight_core.bus.streams import bucket_stream, key_subject

log = structlog.get_logger(__name__)

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
TTL = "Nats-TTL"
TIMEOUT = 5.0


class KvEntry(NamedTuple):
    """A value and the revision that wrote it. Revisions rise over the whole bucket and never repeat."""

    value: bytes
    revision: int


class NewValue(NamedTuple):
    """The new value of a key (None: delete it), and the seconds for which the value or the delete marker is kept."""

    value: bytes | None
    ttl: float | None = None


class Kv:
    """One bucket. Reads of a key go to the leader, so they see every confirmed write.

    In a cluster any server answers lists (`keys`, `entries`): they may miss the writes of the last moments.

    All verbs raise BusDown, BusTimeout or NoResponders when the bucket cannot be reached: reads after 3.5 s, writes
    after 5 s; the write may or may not be stored. A write behind an unsettled write of the same key is no conflict: it
    is repeated within its time.
    """

    def __init__(self, jetstream: JetStream, bucket: str) -> None:
        self._jetstream = jetstream
        self._bucket = bucket
        self._stream = bucket_stream(bucket)

    async def get(self, key: str) -> KvEntry | None:
        record = await self.read(key)
        return KvEntry(record.data, record.seq) if record is not None and not record.gone else None

    async def read(self, key: str) -> StreamMessage | None:
        """The last record of the key, which may be a delete marker."""
        return await self._jetstream.last(self._stream, key_subject(self._bucket, key))

    async def create(self, key: str, value: bytes, *, ttl: float | None = None) -> int:
        """Write a key that does not exist; its revision.

        Raises:
            KeyExists.
        """
        try:
            return await self.update(key, value, 0, ttl=ttl)
        except WrongRevision:
            record = await self.read(key)
            if record is not None and not record.gone:
                raise KeyExists(f"{key} exists already.") from None
            # The last record is the marker of a deleted or expired key.
            try:
                return await self.update(key, value, record.seq if record is not None else 0, ttl=ttl)
            except WrongRevision:
                raise KeyExists(f"{key} was created by somebody else.") from None

    async def update(
        self, key: str, value: bytes, revision: int, *, ttl: float | None = None, timeout: float = TIMEOUT
    ) -> int:
        """Replace the value that has `revision`; the new revision. `ttl` in seconds (whole ms, at least 1 s).

        Raises:
            WrongRevision: if the key has another revision.
        """
        return await self._write(key, value, {EXPECTED: str(revision)} | _ttl(ttl), timeout)

    async def change(self, key: str, fn: Callable[[bytes | None], NewValue | None], *, tries: int = TRIES) -> None:
        """Write the result of `fn` for the present value (None: no value); if it returns None, write nothing.

        `fn` is called again after each conflict.

        Raises:
            KeyConflict: after `tries` conflicts.
        """

        async def attempt() -> None:
            record = await self.read(key)
            new = fn(record.data if record is not None and not record.gone else None)
            revision = record.seq if record is not None else 0
            if new is None:
                return
            if new.value is None:
                await self.delete(key, revision, ttl=new.ttl)
            else:
                await self.update(key, new.value, revision, ttl=new.ttl)

        again = KeyConflict("It was changed by somebody else again and again meanwhile; read it and try again.")
        await retry_conflicts(attempt, tries=tries, failed=again)

    async def put(self, key: str, value: bytes) -> int:
        return await self._write(key, value, {})

    async def delete(self, key: str, revision: int | None = None, *, ttl: float | None = None) -> None:
        """Remove a key; with `revision` only if it has that one. The marker is kept for `ttl` seconds (None: for ever).

        Raises:
            WrongRevision: if the key has another revision.
        """
        expected = {} if revision is None else {EXPECTED: str(revision)}
        await self._write(key, b"", {"KV-Operation": "DEL"} | expected | _ttl(ttl))

    async def erase(self, key: str) -> bool:
        """Overwrite the record of a key in the files of the bus, and leave no marker, so that no mirror hears of it.

        False: there is none. A bucket that was made to let no message be deleted has a marker in its place, and the
        bytes until it is compacted.

        Raises:
            KeyConflict: somebody wrote it again after each of some tries.
        """
        for tried in range(TRIES):
            # What was written after it was read has another sequence number, so it is read until there is nothing.
            if (record := await self.read(key)) is None or record.gone:
                return tried > 0
            try:
                await self._jetstream.delete_overwritten(self._stream, record.seq)
            except StoreRefused as error:
                log.warning("a record is deleted, and not overwritten", bucket=self._bucket, why=error.detail)
                await self.delete(key)
        raise KeyConflict("It is written again and again while it is erased; try again.")

    async def keys(self, prefix: str = "") -> list[str]:
        """The keys that start with `prefix` ("" or whole tokens, such as "app.default."), in the order written."""
        return list(await self.entries(prefix))

    async def entries(self, prefix: str = "") -> dict[str, KvEntry]:
        """The entries whose keys start with `prefix`, in the order written."""
        found: dict[str, KvEntry] = {}
        async for key, record in self._records(f"{prefix}>"):
            found.pop(key, None)
            if not record.gone:
                found[key] = KvEntry(record.data, record.seq)
        return found

    async def each(self, pattern: str) -> AsyncIterator[tuple[str, KvEntry]]:
        """The entries whose keys match `pattern` (wildcards allowed), in the order written, of which a page is in
        memory; one that is written meanwhile may come again."""
        async for key, record in self._records(pattern):
            if not record.gone:
                yield key, KvEntry(record.data, record.seq)

    async def each_key(self, pattern: str) -> AsyncIterator[str]:
        """The keys that match `pattern`, as `each`."""
        async for key, _ in self.each(pattern):
            yield key

    async def _records(self, pattern: str) -> AsyncIterator[tuple[str, StreamMessage]]:
        start = len(key_subject(self._bucket, ""))
        seq = 1
        while True:
            page = await self._jetstream.persist(partial(self._page, pattern, seq), READ_TIMEOUT)
            for record in page.records:
                seq = record.seq + 1
                yield record.subject[start:], record
            if not page.records:
                return

    async def _page(self, pattern: str, seq: int, timeout_s: float) -> StreamPage:
        subject = key_subject(self._bucket, pattern)
        return await self._jetstream.page(self._stream, subject, seq, timeout=timeout_s)

    async def _write(self, key: str, value: bytes, headers: dict[str, str], timeout: float = TIMEOUT) -> int:
        return await self._jetstream.store(key_subject(self._bucket, key), value, timeout=timeout, headers=headers)


def _ttl(ttl: float | None) -> dict[str, str]:
    return {} if ttl is None else {TTL: milliseconds(ttl)}


def milliseconds(ttl: float) -> str:
    """A lifetime of `ttl` seconds as the server reads it."""
    return f"{int(ttl * 1000)}ms"
