"""Sends due deliveries, and stores the results of attempts.

`DeliverySchedule` copies the bucket's due times and may lag, so a delivery is read before it is sent, and its result
written by compare-and-set.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import OrderedDict
from collections.abc import Callable

import structlog

from pilotlight_core.bus import Bus, BusError, KvEntry, Mirror
from pilotlight_core.bus.jetstream import StreamMessage
from pilotlight_core.bus.reader import StreamCursor
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.api.webhook_api import DeliveryRecord, DeliveryState, WebhookRecord
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.subjects import DELIVERY_BUCKET
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks, read_delivery, read_webhook
from pilotlight_gateway.webhooks.delivery_attempts import DeliveryOutcome, attempted, given_up, judged
from pilotlight_gateway.webhooks.delivery_schedule import DeliveryLimits, DeliverySchedule, EndpointKey
from pilotlight_gateway.webhooks.http_sender import HttpSender
from pilotlight_gateway.webhooks.webhook_port import WebhookStore
from pilotlight_gateway.webhooks.webhook_signing import signed_headers

PENDING_AT_MOST = 500
"""Pending deliveries of a webhook above which its feed waits."""
FINISHED_KEPT = 200
"""Finished deliveries per webhook; the oldest is removed first."""
PAUSE = 2.0
"""Seconds until a failed read or write is retried."""
LONGEST_SLEEP = 60.0
BEYOND = 2**62
"""More than any sequence number of a stream."""
AGENT = "Pilotlight-Webhooks/1"
SUBJECT = key_subject(DELIVERY_BUCKET, "")

log = structlog.get_logger(__name__)


class DeliverySender:
    """Sends the deliveries of all webhooks."""

    def __init__(
        self,
        bus: Bus,
        http_sender: HttpSender,
        webhooks: Mirror,
        *,
        bounds: DeliveryLimits | None = None,
        store: WebhookStore | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._bus = bus
        self._kv = bus.kv(DELIVERY_BUCKET)
        self._store = store or BusWebhooks(bus)
        self._http_sender = http_sender
        self._webhooks = webhooks
        self._wall = wall
        self._schedule = DeliverySchedule(bounds)
        self._finished: dict[EndpointKey, OrderedDict[str, int]] = {}
        self._position = StreamCursor(bus, bucket_stream(DELIVERY_BUCKET), f"{SUBJECT}>")
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._removed: asyncio.Queue[EndpointKey] = asyncio.Queue()
        """Webhooks that were removed."""
        self._failing: set[EndpointKey] = set()
        """Those that this sender has noted as failing: `_webhooks` may not have heard of it yet."""

    async def run(self) -> None:
        """Send until cancelled. Only one process may do so at a time."""
        self._webhooks.on_change.append(self._note_webhook)
        try:
            listening = self._bus.listening(bells={f"{SUBJECT}>": self._position.ring})
            async with listening, asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                group.create_task(self._forget())
                await self._dispatch(group)
        finally:
            self._webhooks.on_change.remove(self._note_webhook)

    @property
    def pending(self) -> int:
        """The number of unfinished deliveries."""
        return len(self._schedule)

    @property
    def under_way(self) -> int:
        return self._schedule.under_way

    def put(self, record: DeliveryRecord) -> None:
        """Schedule a delivery that was just written."""
        self._schedule.put(_key(record), _endpoint(record), record.next_at)
        self._changed.set()

    def has_room(self, endpoint: EndpointKey) -> bool:
        """Whether a webhook has fewer than PENDING_AT_MOST deliveries."""
        return self._schedule.pending(endpoint) < PENDING_AT_MOST

    async def wait_room(self, endpoint: EndpointKey) -> None:
        """Wait until a webhook has fewer than PENDING_AT_MOST deliveries."""
        while not self.has_room(endpoint):
            self._room.clear()
            await self._room.wait()

    async def _follow(self) -> None:
        while True:
            page = await self._position.read()
            for stored in page.records:
                with contextlib.suppress(BusError):
                    await self._note(stored)
            if page.records:
                self._changed.set()
            else:
                await self._position.wait_bell()

    async def _note(self, stored: StreamMessage) -> None:
        key = stored.subject[len(SUBJECT) :]
        record = None if stored.gone else read_delivery(key, stored.data)
        if record is None:
            self._drop(key)
        elif record.state is DeliveryState.PENDING:
            self._finished.get(_endpoint(record), OrderedDict()).pop(key, None)
            self._schedule.put(key, _endpoint(record), record.next_at)
        else:
            self._drop(key)
            await self._keep(key, _endpoint(record), stored.seq)

    async def _keep(self, key: str, endpoint: EndpointKey, seq: int) -> None:
        kept = self._finished.setdefault(endpoint, OrderedDict())
        kept[key] = seq
        kept.move_to_end(key)
        if len(kept) > FINISHED_KEPT:
            oldest, below = kept.popitem(last=False)
            stream = bucket_stream(DELIVERY_BUCKET)
            await self._bus.purge_before(stream, key_subject(DELIVERY_BUCKET, oldest), below + 1)

    def _note_webhook(self, key: str, entry: KvEntry | None) -> None:
        if entry is None:
            endpoint = EndpointKey(*key.split(".", 1))
            self._finished.pop(endpoint, None)
            self._failing.discard(endpoint)
            self._removed.put_nowait(endpoint)

    async def _forget(self) -> None:
        """Delete deliveries of removed webhooks, so that a tenant cannot accumulate them."""
        while True:
            endpoint = await self._removed.get()
            for key in self._schedule.waiting(endpoint):
                self._drop(key)
            try:
                subject = f"{SUBJECT}{endpoint.tenant}.{endpoint.webhook}.*"
                await self._bus.purge_before(bucket_stream(DELIVERY_BUCKET), subject, BEYOND)
            except BusError as error:
                log.warning("deliveries of a webhook are removed later", webhook=endpoint.webhook, error=str(error))
                await asyncio.sleep(PAUSE)
                self._removed.put_nowait(endpoint)

    def _drop(self, key: str) -> None:
        self._schedule.drop(key)
        self._room.set()

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._changed.clear()
            for key in self._schedule.take(self._wall()):
                group.create_task(self._send(key))
            due = self._schedule.next_at()
            wait = LONGEST_SLEEP if due is None else min(max(0.0, due - self._wall()), LONGEST_SLEEP)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    async def _send(self, key: str) -> None:
        try:
            stored = await self._kv.read(key)
            record = None if stored is None or stored.gone else read_delivery(key, stored.data)
            if record is None or record.state is not DeliveryState.PENDING:
                self._drop(key)
            elif record.next_at > self._wall():
                self._schedule.put(key, _endpoint(record), record.next_at)
            else:
                await self._attempt(key, record)
        except PilotlightError as error:
            log.warning("a delivery is looked at again later", key=key, error=str(error))
            self._put_off(key, PAUSE)
        except Exception:
            log.exception("a delivery is looked at again later", key=key)
            self._put_off(key, LONGEST_SLEEP)
        finally:
            self._schedule.done(key)
            self._changed.set()

    def _put_off(self, key: str, seconds: float) -> None:
        tenant, webhook, _ = key.split(".")
        self._schedule.put(key, EndpointKey(tenant, webhook), self._wall() + seconds)

    async def _attempt(self, key: str, record: DeliveryRecord) -> None:
        name = f"{record.tenant}.{record.webhook}"
        entry = self._webhooks.get(name)
        webhook = None if entry is None else read_webhook(name, entry)
        if webhook is None:
            if entry is not None:  # it is unreadable
                self._put_off(key, LONGEST_SLEEP)
                return
            await self._write(record, lambda _: None)
            self._drop(key)
            return
        if webhook.disabled:
            why = f"the webhook is disabled: {webhook.disabled}"
            after = await self._write(record, lambda present: given_up(present, self._wall(), why))
        else:
            outcome = await self._post(webhook, record)
            spread = random.random()
            after = await self._retry_write(record, lambda present: attempted(present, outcome, spread))
            await self._judge(webhook, outcome)
        if after is None or after.state is not DeliveryState.PENDING:
            self._drop(key)
        else:
            self._schedule.put(key, _endpoint(after), after.next_at)

    async def _post(self, webhook: WebhookRecord, record: DeliveryRecord) -> DeliveryOutcome:
        headers = {"content-type": "application/json", "user-agent": AGENT}
        headers |= signed_headers(webhook.secrets, record.id, self._wall(), record.body)
        if record.traceparent:
            headers["traceparent"] = record.traceparent
        outcome = await self._http_sender.post(webhook.tenant, webhook.url, headers, record.body)
        log.info(
            "webhook sent", tenant=record.tenant, webhook=record.webhook, delivery=record.id,
            status=outcome.attempt.status, error=outcome.attempt.error, ms=outcome.attempt.ms,
        )  # fmt: skip
        return outcome

    async def _write(
        self, record: DeliveryRecord, change: Callable[[DeliveryRecord], DeliveryRecord | None]
    ) -> DeliveryRecord | None:

        def changed(present: DeliveryRecord | None) -> DeliveryRecord | None:
            return change(present) if present is not None and present.state is DeliveryState.PENDING else present

        return await self._store.change_delivery(record.tenant, record.webhook, record.id, changed)

    async def _retry_write(
        self, record: DeliveryRecord, change: Callable[[DeliveryRecord], DeliveryRecord | None]
    ) -> DeliveryRecord | None:
        """Write an attempt's result, however long that takes: an unwritten attempt is repeated."""
        while True:
            try:
                return await self._write(record, change)
            except PilotlightError as error:
                log.warning("an attempt waits to be written down", delivery=record.id, error=str(error))
                await asyncio.sleep(PAUSE)

    async def _judge(self, webhook: WebhookRecord, outcome: DeliveryOutcome) -> None:
        endpoint = EndpointKey(webhook.tenant, webhook.id)
        if judged(webhook, outcome) == webhook and not (outcome.delivered and endpoint in self._failing):
            return
        made = await self._store.change_webhook(
            webhook.tenant, webhook.id, lambda present: None if present is None else judged(present, outcome)
        )
        if made is not None and made.failing_since is not None:
            self._failing.add(endpoint)
        else:
            self._failing.discard(endpoint)
        if made is not None and made.disabled:
            log.warning("webhook disabled", tenant=made.tenant, webhook=made.id, why=made.disabled)


def _key(record: DeliveryRecord) -> str:
    return f"{record.tenant}.{record.webhook}.{record.id}"


def _endpoint(record: DeliveryRecord) -> EndpointKey:
    return EndpointKey(record.tenant, record.webhook)
