"""Finds the events of webhooks: each `WebhookFeed` reads the stream of its tenant's jobs.

A job's record contains its end, so no event is lost. A feed stores its position; an event that is read twice finds its
delivery. A feed waits while its webhook has too many pending deliveries.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
import structlog

from pilotlight_core.bus import Bus, Kv, KvEntry, Mirror
from pilotlight_core.bus.jetstream import StreamMessage
from pilotlight_core.bus.reader import StreamCursor
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookRecord
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.subjects import DELIVERY_BUCKET, JOB_BUCKET
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks, read_webhook
from pilotlight_gateway.webhooks.delivery_schedule import EndpointKey
from pilotlight_gateway.webhooks.delivery_sender import DeliverySender
from pilotlight_gateway.webhooks.job_events import event_of

POLL = 15.0
"""Seconds between reads without a bell, whose message may be lost."""
KEEP_EVERY = 1.0
"""Seconds between writes of the position."""
PAUSE = 1.0
AT_A_TIME = 32
CURSOR_SECONDS = 40 * 86_400.0
"""More than any job's retention."""

log = structlog.get_logger(__name__)


class WebhookFeeds:
    """Runs a feed for each enabled webhook."""

    def __init__(self, bus: Bus, webhooks: Mirror, sender: DeliverySender) -> None:
        self._bus = bus
        self._webhooks = webhooks
        self._sender = sender
        self._reading: dict[str, tuple[WebhookRecord, asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run feeds until cancelled."""
        self._webhooks.on_change.append(self._note)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._changed.clear()
                    self._settle(group)
                    await self._changed.wait()
        finally:
            self._webhooks.on_change.remove(self._note)

    def _note(self, _key: str, _entry: KvEntry | None) -> None:
        self._changed.set()

    def _settle(self, group: asyncio.TaskGroup) -> None:
        found = ((key, read_webhook(key, entry)) for key, entry in self._webhooks.items())
        wanted = {key: record for key, record in found if record is not None}
        for key, (record, task) in list(self._reading.items()):
            if _reads(wanted.get(key)) != _reads(record) or task.done():
                task.cancel()
                del self._reading[key]
        for key, record in wanted.items():
            if not record.disabled and key not in self._reading:
                feed = WebhookFeed(self._bus, record, self._sender)
                self._reading[key] = (record, group.create_task(feed.run()))


def _reads(record: WebhookRecord | None) -> tuple[object, ...] | None:
    """The fields of a webhook on which its feed depends."""
    return None if record is None or record.disabled else (record.events, record.after)


class WebhookFeed:
    """Reads the events of one webhook."""

    def __init__(self, bus: Bus, webhook: WebhookRecord, sender: DeliverySender) -> None:
        self._bus = bus
        self._webhook = webhook
        self._sender = sender
        self._kv: Kv = bus.kv(DELIVERY_BUCKET)
        self._store = BusWebhooks(bus)
        self._cursor = _Cursor(self._kv, f"{webhook.tenant}.{webhook.id}", time.monotonic)

    async def run(self) -> None:
        subject = key_subject(JOB_BUCKET, f"{self._webhook.tenant}.>")
        position = StreamCursor(self._bus, bucket_stream(JOB_BUCKET), subject)
        async with self._bus.listening(bells={subject: position.ring}):
            while True:
                try:
                    position.next = max(await self._cursor.read(), self._webhook.after) + 1
                    await self._read(position)
                except PilotlightError as error:
                    log.warning("a webhook's events are looked for again", webhook=self._webhook.id, error=str(error))
                    await asyncio.sleep(PAUSE)
                except Exception:
                    log.exception("a webhook's events are looked for again", webhook=self._webhook.id)
                    await asyncio.sleep(POLL)

    async def _read(self, position: StreamCursor) -> None:
        while True:
            page = await position.read()
            found = [record for record in map(self._event, page.records) if record is not None]
            for start in range(0, len(found), AT_A_TIME):
                await self._sender.wait_room(EndpointKey(self._webhook.tenant, self._webhook.id))
                await asyncio.gather(*map(self._deliver, found[start : start + AT_A_TIME]))
            if page.records:
                await self._cursor.move(page.records[-1].seq)
            else:
                await self._cursor.settle()
                await position.wait_bell(POLL)

    def _event(self, stored: StreamMessage) -> DeliveryRecord | None:
        if stored.gone:
            return None
        try:
            return event_of(stored.data, self._webhook)
        except msgspec.DecodeError as error:
            log.error("a job's record cannot be read", seq=stored.seq, error=str(error))
            return None

    async def _deliver(self, record: DeliveryRecord) -> None:
        made = await self._store.change_delivery(
            record.tenant, record.webhook, record.id, lambda present: present or record
        )
        if made is record:
            self._sender.put(record)


class _Cursor:
    def __init__(self, kv: Kv, key: str, clock: Callable[[], float]) -> None:
        self._kv = kv
        self._key = key
        self._clock = clock
        self._revision = self._written = self._at = 0
        self._wrote = float("-inf")

    async def read(self) -> int:
        record = await self._kv.read(self._key)
        self._revision = 0 if record is None else record.seq
        # An invalid position counts as none: the events' deliveries exist under their ids.
        known = record is not None and not record.gone and record.data.isdigit()
        self._written = self._at = int(record.data) if record is not None and known else 0
        return self._at

    async def move(self, seq: int) -> None:
        """Set the position."""
        self._at = seq
        if self._clock() - self._wrote >= KEEP_EVERY:
            await self.settle()

    async def settle(self) -> None:
        """Store the position.

        Raises:
            WrongRevision: another feed has stored its own: this process has lost the lease.
        """
        if self._at != self._written:
            self._revision = await self._kv.update(self._key, b"%d" % self._at, self._revision, ttl=CURSOR_SECONDS)
            self._written, self._wrote = self._at, self._clock()
