"""A connection to the bus, through which processes exchange messages and keep state.

A connection survives the server: it reconnects for ever and restores its subscriptions. While disconnected nothing is
buffered and a publish fails at once, because its receiver would get it too late.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec
import structlog

from pilotlight_core.bus.background_tasks import BackgroundTasks
from pilotlight_core.bus.bus_errors import BusDown, BusError
from pilotlight_core.bus.bus_tls import bus_context, tls_problem
from pilotlight_core.bus.client import STATUS, NatsClient, RawHandler, Subscription
from pilotlight_core.bus.group_commit import GroupCommit
from pilotlight_core.bus.inbox import Inbox
from pilotlight_core.bus.jetstream import JetStream
from pilotlight_core.bus.kv import Kv
from pilotlight_core.bus.lease import Lease, MaySucceed, at_once
from pilotlight_core.bus.mirror import Mirror
from pilotlight_core.bus.nkeys import Nkey
from pilotlight_core.bus.reader import DecodedMessage, read_stream
from pilotlight_core.bus.streams import DEFAULT_LIMITS, StreamLimits, stream_configs
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.wire import decode, encode

log = structlog.get_logger(__name__)


class Notice(Enum):
    NO_RESPONDERS = "no_responders"  # a message with this reply subject had no receiver


NO_RESPONDERS: Final = Notice.NO_RESPONDERS
Handler = Callable[[str, Any, str], None]
"""(subject, message, reply), called in order. For NO_RESPONDERS `reply` is the subject without a listener."""

SOFT_BACKLOG = 2**20
"""Bytes not yet written beyond which `publish` waits for the server instead of queueing more."""
FLUSH_TIMEOUT = 5.0
CALLBACK_TIMEOUT = 10.0
CANCEL_AGAIN_S = 0.1
"""After so long something that is to end is cancelled again."""
CLOSE_TIMEOUT = 2.0
CONNECT_TIMEOUT = 2
REFUSED = "authorization violation"
NOT_LET_IN = (
    "the server does not let it in: its password is another than in the server's configuration. Or it is a node by a "
    "token, and was revoked, has expired or lost its name to another host ('pilotlight node list'), so that it joins "
    "anew; or no gateway answers for it"
)
ERROR_EVERY_S = 10.0
CREDENTIALS = re.compile(r"(?<=://)[^\s/@]+@")
RECONNECT_PAUSE_S = 0.1
PING_INTERVAL_S = 2
"""Seconds; a server that answers no ping for two of these counts as lost."""


@dataclass(frozen=True, kw_only=True)
class BusStatistics:
    connected: bool
    reconnects: int
    messages_in: int
    messages_out: int
    bytes_in: int
    bytes_out: int
    undecodable: int
    handler_errors: int
    backlog: int
    open_requests: int


class Bus:
    """A connection to the bus; `connect` makes it."""

    def __init__(
        self,
        client: NatsClient,
        inbox: str,
        limits: StreamLimits,
        *,
        makes_streams: bool = True,
        storage: Callable[[Inbox], JetStream] = JetStream,
    ) -> None:
        self._client = client
        self._inbox = Inbox(client, inbox)
        self._limits = limits
        self._makes_streams = makes_streams
        self._undecodable = 0
        self._handler_errors = 0
        self._reconnected = asyncio.Event()
        self._closing = False
        self.jetstream = storage(self._inbox)
        self._errors_told = float("-inf")
        self._ca_file = self._last_problem = ""
        self.closed = asyncio.Event()
        """Set when the connection is gone for good: the process must then end, so that it is restarted."""
        self.on_reconnect: list[Callable[[], Awaitable[None]]] = []
        """Called after each reconnect, once streams and subscriptions are restored."""
        self._jobs = BackgroundTasks(self.closed.set)

    # -- messages -----------------------------------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._client.loop

    @property
    def connected(self) -> bool:
        return self._client.is_connected

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        """Queue a message, which is sent at the end of this turn of the loop.

        Raises:
            BusDown: while disconnected; nothing was sent.
            MessageTooLarge: beyond the server's limit.
        """
        self._client.publish_nowait(subject, encode(message), reply)

    async def publish(self, subject: str, message: Message, *, reply: str = "") -> None:
        """Queue a message, and wait for the server if the backlog is large.

        With `reply`, a subscriber of that subject gets NO_RESPONDERS if `subject` has no listener.

        Raises:
            BusDown: while disconnected; nothing was sent.
            MessageTooLarge: beyond the server's limit.
        """
        self._client.publish_nowait(subject, encode(message), reply)
        if self._client.backlog > SOFT_BACKLOG:
            await self.flush()

    def publish_data(self, subject: str, data: bytes, *, reply: str = "") -> None:
        """Queue bytes that are no message of the platform's: what servers of the bus read themselves.

        Raises:
            BusDown: while disconnected; nothing was sent.
        """
        self._client.publish_nowait(subject, data, reply)

    async def request(self, subject: str, message: Message, timeout: float) -> Any:
        """The reply to `message`.

        Raises:
            NoResponders: no listener; it was not received.
            BusTimeout, BusDown: it may or may not have been received.
        """
        reply = await self._inbox.ask(subject, encode(message), timeout=timeout)
        return decode(reply.data)

    async def flush(self, timeout: float = FLUSH_TIMEOUT) -> None:
        """Wait until the server has processed everything published before.

        Raises:
            BusTimeout, BusDown.
        """
        await self._inbox.flush(timeout)

    async def subscribe(
        self, subject: str, handler: Handler, *, queue: str = "", read: Callable[[bytes], Any] = decode
    ) -> Subscription:
        """Call `handler` for each message on `subject`, in order, also after reconnects.

        `read` decodes them; it raises DecodeError as `decode` does.

        `handler` must be fast, since it runs in the read loop. Undecodable messages are counted and dropped; what
        `handler` raises is logged. Call `flush` afterwards if no later message may be missed.
        """

        def receive(subject: str, reply: str, data: bytes, headers: dict[str, str] | None) -> None:
            try:
                if headers is not None and headers.get(STATUS) == "503":
                    handler(subject, NO_RESPONDERS, headers.get("Nats-Subject", ""))
                else:
                    handler(subject, read(data), reply)
            except msgspec.DecodeError as error:
                self._undecodable += 1
                log.warning("undecodable message dropped", subject=subject, size=len(data), error=str(error))
            except Exception:
                self._handler_errors += 1
                log.exception("a bus handler raised", subject=subject)

        number = await self._client.subscribe_raw(subject, receive, queue)
        return Subscription(self._client, number, subject)

    async def subscribe_data(self, subject: str, receive: RawHandler) -> Subscription:
        """Call `receive` for each message on `subject` as bytes: what servers of the bus write themselves."""
        return Subscription(self._client, await self._client.subscribe_raw(subject, receive), subject)

    async def doorbell(self, subject: str, ring: Callable[[], None]) -> Subscription:
        """Call `ring` for each message on `subject`, without decoding it."""

        def receive(_subject: str, _reply: str, _data: bytes, _headers: dict[str, str] | None) -> None:
            ring()

        number = await self._client.subscribe_raw(subject, receive)
        return Subscription(self._client, number, subject)

    @asynccontextmanager
    async def listening(
        self,
        handlers: Mapping[str, Handler] = {},
        *,
        bells: Mapping[str, Callable[[], None]] = {},
        readers: Mapping[str, Callable[[bytes], Any]] = {},
        reconnected: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[None]:
        """Until the block ends, call these handlers and bells, and `reconnected` after each reconnect.

        `readers` decode the messages of some of the handlers' subjects.
        """
        async with AsyncExitStack() as stack:
            for subject, handler in handlers.items():
                read = readers.get(subject, decode)
                stack.push_async_callback((await self.subscribe(subject, handler, read=read)).unsubscribe)
            for subject, ring in bells.items():
                stack.push_async_callback((await self.doorbell(subject, ring)).unsubscribe)
            if reconnected is not None:
                self.on_reconnect.append(reconnected)
                stack.callback(self.on_reconnect.remove, reconnected)
            yield

    # -- what outlives a process --------------------------------------------------------------------------------

    async def ensure_streams(self, timeout: float = 15.0) -> None:
        """Create or update the platform's streams and buckets; `timeout` seconds for each.

        Raises:
            BusError.
        """
        for config in stream_configs(self._limits):
            await self.jetstream.ensure_stream(config, timeout)

    async def store(self, subject: str, message: Message, *, id: str, timeout: float = 10.0) -> int:  # noqa: A002
        """Store a message once in the stream of `subject`, however often it is retried; its sequence.

        The stream remembers `id` per subject for two minutes.

        Raises:
            BusError: not confirmed within `timeout`; it may or may not be stored.
        """
        return await self.jetstream.store(subject, encode(message), message_id=f"{subject}:{id}", timeout=timeout)

    def read_stream(
        self, stream: str, subject: str, *, start: str | int = "all", follow: bool = False
    ) -> AsyncGenerator[DecodedMessage, None]:
        """The stored messages on `subject` (wildcards allowed) in order, each once.

        `start` is "all", "new" or the first sequence. With `follow` the iterator never ends and survives restarts of
        the server; without, it ends with the stream's last message.
        """
        return read_stream(self, stream, subject, start=start, follow=follow)

    async def purge_before(self, stream: str, subject: str, seq: int) -> int:
        return await self.jetstream.purge(stream, subject=subject, below=seq)

    def kv(self, bucket: str) -> Kv:
        return Kv(self.jetstream, bucket)

    def group_commit(self, bucket: str) -> GroupCommit:
        return GroupCommit(self.jetstream, bucket, self.loop)

    def mirror(self, bucket: str, prefix: str = "") -> Mirror:
        """A live copy of the keys that start with `prefix` ("" or whole tokens, such as "app.default.")."""
        return Mirror(self, bucket, prefix)

    def lease(
        self, key: str, holder: str, ttl: float = 3.0, data: bytes = b"", may_succeed: MaySucceed = at_once
    ) -> Lease:
        return Lease(self, key, holder, ttl=ttl, data=data, may_succeed=may_succeed)

    def use_key(self, key: Nkey) -> None:
        """Connect with another key from the next time on; the present connection goes on."""
        self._client.use_key(key)

    # -- how it is ----------------------------------------------------------------------------------------------

    def statistics(self) -> BusStatistics:
        stats = self._client.stats
        return BusStatistics(
            connected=self.connected,
            reconnects=stats["reconnects"],
            messages_in=stats["in_msgs"],
            messages_out=stats["out_msgs"],
            bytes_in=stats["in_bytes"],
            bytes_out=stats["out_bytes"],
            undecodable=self._undecodable,
            handler_errors=self._handler_errors,
            backlog=self._client.backlog,
            open_requests=len(self._inbox),
        )

    def spawn(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a background task as long as the connection; if it crashes, the connection counts as closed."""
        return self._jobs.spawn(job)

    async def end(self, job: asyncio.Task[None]) -> None:
        await self._jobs.end(job)

    # -- the connection's own life ------------------------------------------------------------------------------

    async def open(self, url: str, name: str, timeout: float, ca_file: str = "", key: Nkey | None = None) -> None:
        """See `connect`."""
        self._ca_file = ca_file
        tls = bus_context(url, ca_file)
        if key is not None:
            self._client.use_key(key)
        try:
            await _ended_within(
                self._client.connect(
                    url.split(","),
                    name=name,
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnected,
                    reconnected_cb=self._on_reconnected,
                    closed_cb=self._on_closed,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_PAUSE_S,  # type: ignore[arg-type]
                    connect_timeout=CONNECT_TIMEOUT,
                    ping_interval=PING_INTERVAL_S,
                    max_outstanding_pings=2,
                    pending_size=0,
                    tls=tls,
                    **self._client.proof,
                ),
                timeout,
            )
        except TimeoutError:
            place = CREDENTIALS.sub("", url)
            why = f": {self._last_problem}" if self._last_problem else ""
            raise BusDown(f"No connection to the bus at {place} within {timeout:g} s{why}.") from None
        await self._inbox.start()
        self._jobs.spawn(self._restore())

    async def aclose(self) -> None:
        """Cancel the background tasks and close the connection, within a bounded time."""
        await self._jobs.end_all()
        self._closing = True
        with contextlib.suppress(Exception):  # closing a broken connection raises many kinds of errors
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._client.close()

    async def _on_error(self, error: Exception) -> None:
        problem = tls_problem(error, self._ca_file) or (NOT_LET_IN if REFUSED in str(error).lower() else "")
        self._last_problem = problem or self._last_problem  # what comes behind one, such as an end, says less
        # While the server is away ten attempts a second fail: one line in ten seconds is enough.
        now = time.monotonic()
        if now - self._errors_told > ERROR_EVERY_S:
            self._errors_told = now
            log.warning("bus error", error=problem or repr(error))

    async def _on_disconnected(self) -> None:
        self._client.drop_backlog()
        self._inbox.fail_all()
        if not self._closing:
            log.warning("the bus is disconnected")

    async def _on_reconnected(self) -> None:
        log.info("the bus is connected again")
        self._reconnected.set()

    async def _on_closed(self) -> None:
        self._inbox.fail_all()
        self.closed.set()

    async def _restore(self) -> None:
        # Not in nats-py's own reconnect task, which is cancelled when the link drops again.
        while True:
            await self._reconnected.wait()
            self._reconnected.clear()
            try:
                if self._makes_streams:
                    await self.ensure_streams()
            except BusError as error:
                log.warning("streams are not restored yet", error=str(error))
                await asyncio.sleep(RECONNECT_PAUSE_S)
                self._reconnected.set()
                continue
            for callback in list(self.on_reconnect):
                try:
                    async with asyncio.timeout(CALLBACK_TIMEOUT):
                        await callback()
                except Exception:
                    log.exception("a reconnect callback raised")


async def _ended_within(work: Coroutine[Any, Any, None], timeout: float) -> None:
    """Wait for work that may lose a cancellation, as `wait_for` of Python 3.11 does within it: it is repeated.

    Raises:
        TimeoutError: after `timeout` seconds.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise TimeoutError
        task.result()
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_AGAIN_S)


@asynccontextmanager
async def connect(
    url: str,
    *,
    name: str,
    inbox: str = "_INBOX",
    timeout: float = 10.0,
    ca_file: str = "",
    limits: StreamLimits = DEFAULT_LIMITS,
    makes_streams: bool = True,
    key: Nkey | None = None,
    storage: Callable[[Inbox], JetStream] = JetStream,
) -> AsyncIterator[Bus]:
    """Connect to the bus at `url`, create the platform's streams, and stay connected until the block ends.

    `url` may name several servers, separated by commas. `inbox` is the prefix of this service's reply subjects; each
    service has its own. Services without permission to create streams (`bus_users`) set `makes_streams` to False.
    Servers at `tls://` must prove their names by an authority in `ca_file`; nothing is said to one that does not.
    `key` is whose holder the servers know, in place of a password in `url`. `storage` makes what speaks of streams.

    Raises:
        BadInput: there are no authorities in `ca_file`.
        BusDown: if there is no connection within `timeout` seconds.
        BusError: if the streams cannot be created.
    """
    client = NatsClient()
    bus = Bus(client, inbox, limits, makes_streams=makes_streams, storage=storage)
    try:
        await bus.open(url, name, timeout, ca_file, key)
        if makes_streams:
            await bus.ensure_streams()
        yield bus
    finally:
        await bus.aclose()
