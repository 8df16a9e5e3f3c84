"""nats-py with a short path for publishing and receiving.

nats-py spends most of a small message's time on queues, on a task per subscription and for the writer, on coroutines
that never wait, and on the single characters of headers. `NatsClient` publishes from plain code, writes once per turn
of the loop, and calls a plain handler from the read loop, in order and without a queue: a slow handler pushes back on
the socket and fills no memory. Messages that are there already are read for a millisecond at a time: what else the
process has to do is not delayed by a burst.

No other module touches nats-py's internals. `NatsClient` overrides `_process_msg` (no queue), `_process_err`
(reconnect instead of close), `_process_info` (no plain connection in place of TLS), `_connect_to_server` (no socket is
left open) and `_read_loop` (nobody stays connected who reads no more), uses `_process_op_err`, `_current_server`,
`_pending`, `_pending_data_size`, `_transport._io_writer`, `_flush_queue`, `_max_payload`, `_subs` and `_public_nkey`,
and relies on `subscribe` taking `_sid + 1` before its first await. The distribution pins nats-py below 2.17;
`test_nats_internals.py` fails if any of these changes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable
from functools import lru_cache
from time import perf_counter
from typing import Any

from pilotlight_core.bus.bus_errors import BusDown, MessageTooLarge
from pilotlight_core.bus.bus_tls import check_tls_offer
from pilotlight_core.bus.nats_library import AUTHORIZATION_VIOLATION, PERMISSIONS_ERR, Client, Error
from pilotlight_core.bus.nkeys import Nkey

RawHandler = Callable[[str, str, bytes, dict[str, str] | None], None]
"""(subject, reply, data, headers). Called from the read loop; must be fast and must not raise."""

OVERHEAD = 4096
"""Bytes kept free below the server's max_payload: if headers exceed it, the server closes the connection for good."""
MAX_SUBJECT = 512
STATUS = "Status"
DESCRIPTION = "Description"
"""Where `headers_of` puts what the server says in a message's status line."""
TURN_S = 0.001
"""Of a turn of the loop for messages that are there already; nats-py would read on until none is left."""
MAX_BACKLOG = 64 * 2**20
"""Unwritten bytes beyond which a connected client counts as disconnected."""


@lru_cache(8192)
def checked_subject(subject: str) -> str:
    """`subject`, unless it could break the line protocol.

    Raises:
        ValueError: if it is empty, too long, or has white space.
    """
    if not subject or len(subject) > MAX_SUBJECT or len(subject.split()) != 1 or subject != subject.strip():
        raise ValueError(f"{subject!r} is not a subject")
    return subject


def header_block(headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        raise ValueError("a header has a line break")
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def headers_of(block: bytes) -> dict[str, str]:
    """The headers of a message: the inverse of `header_block`. A status line gives `Status` and `Description`."""
    first, *lines = block.decode("utf-8", "replace").split("\r\n")
    _, status, description = (*first.split(" ", 2), "", "")[:3]
    headers = {STATUS: status} if status.isdigit() else {}
    if description:
        headers[DESCRIPTION] = description
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return headers


class NatsClient(Client):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()
        """Stored, since a look-up takes a system call in Python 3.11."""
        self._handlers: dict[int, RawHandler] = {}
        self._write_due = False
        self._turn_ends = 0.0
        """When others of the loop have their turn, although more messages are there; 0.0: none came in this turn."""
        self._key: Nkey | None = None

    def use_key(self, key: Nkey) -> None:
        """Connect as the holder of a key from the next time on: the server asks for its signature."""
        # nats-py takes a seed alone, and loads a library for it that does what `cryptography` does here.
        self._key = key
        self._public_nkey = key.public

    @property
    def proof(self) -> dict[str, Any]:
        """What `connect` is given besides, for who has a key."""
        return {"signature_cb": self._sign} if self._key is not None else {}

    def _sign(self, nonce: str) -> bytes:
        assert self._key is not None  # noqa: S101 - `proof` names this only where there is one
        return base64.b64encode(self._key.sign(nonce.encode()))

    @property
    def backlog(self) -> int:
        """Bytes published but not yet written to the socket."""
        return self._pending_data_size

    def publish_nowait(self, subject: str, payload: bytes, reply: str = "", headers: bytes = b"") -> None:
        """Queue a message for the socket; it is written at the end of this turn of the loop.

        Raises:
            BusDown: while disconnected, or if the backlog is full.
            MessageTooLarge: beyond the server's limit.
        """
        if not self.is_connected:
            raise BusDown("There is no connection to the bus.")
        if self._pending_data_size > MAX_BACKLOG:
            raise BusDown("The bus takes no more messages: its backlog is full.")
        size = len(payload) + len(headers)
        if size + OVERHEAD > self._max_payload:
            raise MessageTooLarge(f"A message of {size} bytes is more than the {self._max_payload} that fit the bus.")
        checked_subject(subject)
        if reply:
            checked_subject(reply)
        if headers:
            line = f"HPUB {subject} {reply} {len(headers)} {size}\r\n".encode()
        else:
            line = f"PUB {subject} {reply} {size}\r\n".encode()
        command = b"".join((line, headers, payload, b"\r\n"))
        self._pending.append(command)
        self._pending_data_size += len(command)
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += len(payload)
        if not self._write_due:
            self._write_due = True
            self.loop.call_soon(self._write)

    def _write(self) -> None:
        self._write_due = False
        if not self._pending or not self.is_connected:
            return
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None and writer.is_closing():
            return  # who reads hears of it too, and connects anew
        if writer is not None and not writer.transport.get_write_buffer_size():
            writer.writelines(self._pending)
            self.drop_backlog()
        elif self._flush_queue is not None and self._flush_queue.empty():
            self._flush_queue.put_nowait(self.loop.create_future())

    def drop_backlog(self) -> None:
        """Discard unwritten messages: after a reconnect they would arrive late, when their sender has given up."""
        self._pending = []
        self._pending_data_size = 0

    async def subscribe_raw(self, subject: str, handler: RawHandler, queue: str = "") -> int:
        """Call `handler` for each message on `subject`; the number of the subscription, for `unsubscribe_raw`."""
        # `subscribe` takes this number before its first await, so the handler is there before the first message.
        number = self._sid + 1
        self._handlers[number] = handler
        # A future instead of a callback keeps nats-py from starting a queue and a task; it is never resolved.
        await self.subscribe(subject, queue=queue, future=self.loop.create_future())
        return number

    async def unsubscribe_raw(self, number: int) -> None:
        self._handlers.pop(number, None)
        subscription = self._subs.get(number)
        if subscription is not None and not self.is_closed:
            # A transport that has just closed says so by a RuntimeError: with the connection the subscription is gone.
            with contextlib.suppress(RuntimeError):
                await subscription.unsubscribe()

    async def _read_loop(self) -> None:
        # nats-py ends this at an error that it does not know, such as what uvloop says of a transport that has closed
        # while the process stood still, and then seems to be connected for ever.
        await super()._read_loop()
        if self.is_connected:
            await self._process_op_err(Error("nats: nobody reads any more"))

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        # nats-py takes TLS for what the server wishes, and would send the password to one that does not.
        if initial_connection and (server := self._current_server) is not None and server.uri.scheme == "tls":
            check_tls_offer(info)
        await super()._process_info(info, initial_connection)

    async def _connect_to_server(self, s: Any) -> None:
        # nats-py drops the socket of an attempt that was refused, and leaves it open for the garbage collector: a node
        # that is not let in tries ten times a second.
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call] # nats-py has no types there
        await super()._connect_to_server(s)

    async def _process_err(self, err_msg: str) -> None:
        # nats-py closes for good on nearly every error of the server, even on one message that was too large.
        if PERMISSIONS_ERR in err_msg or AUTHORIZATION_VIOLATION in err_msg:
            await super()._process_err(err_msg)
        else:
            await self._process_op_err(Error(f"nats: {err_msg}"))

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        handler = self._handlers.get(sid)
        if handler is None:
            return
        self.stats["in_msgs"] += 1
        self.stats["in_bytes"] += len(data)
        handler(subject.decode(), reply.decode(), data, headers_of(headers) if headers else None)
        if not self._turn_ends:
            self._turn_ends = perf_counter() + TURN_S
            self.loop.call_soon(self._end_turn)
        elif perf_counter() > self._turn_ends:
            await asyncio.sleep(0)

    def _end_turn(self) -> None:
        self._turn_ends = 0.0


class Subscription:
    """A subscription to a subject, until it is ended or the bus closes."""

    def __init__(self, client: NatsClient, number: int, subject: str) -> None:
        self._client = client
        self._number = number
        self.subject = subject

    async def unsubscribe(self) -> None:
        await self._client.unsubscribe_raw(self._number)
