"""JetStream's API, spoken directly: publish, read, purge, and create streams.

nats-py's own JetStream classes are not used: their key-value store ignores the server's delete markers, drops the
time-to-live of an update, and its watches receive nothing for up to 20 s after a restart.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import structlog

from pilotlight_core.bus.bus_errors import (
    BusDown,
    BusIncomplete,
    BusTimeout,
    NoResponders,
    StoreRefused,
    WrongRevision,
)
from pilotlight_core.bus.client import DESCRIPTION, header_block, headers_of
from pilotlight_core.bus.inbox import Inbox, Reply
from pilotlight_core.bus.streams import KEPT_STREAMS
from pilotlight_core.model.ids import token

API = "$JS.API"
ANSWER_TIMEOUT = 2.0
"""Seconds for one request; callers repeat it within their own time."""
READ_TIMEOUT = 3.5
"""Longer than one request: what was lost with its server is asked again of the next one."""
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
PAGE_MESSAGES = 256
PAGE_BYTES = 2**20
SHOWN = 200
"""Bytes of an answer that cannot be read, in the error about it."""

WRONG_LAST_SEQUENCE = 10071
IN_PROCESS = frozenset({10158, 10164})
"""A write with this id, or of this subject, is under way; whether it will be stored is not known yet."""
STREAM_EXISTS = 10058
SUBJECTS_OVERLAP = 10065
"""Another stream has a subject of it. None of the platform's does, but for the mark of a restore."""
NO_PEERS, NOT_AVAILABLE = 10005, 10008
"""Servers of a cluster have not found each other yet."""
FOR_EVER: dict[str, dict[str, Any]] = {
    "can not cancel deny message deletes": {"deny_delete": True},
    "message TTL status can not be disabled": {"allow_msg_ttl": True},
}
"""What the server lets no stream lose again, by what it says of it (there are no numbers for each alone)."""
INCOMPLETE = (
    "A restore into this bus has begun and did not come to its end, so what is there is a part of a platform: end all "
    "processes but nats-server, give it an empty folder, and restore again. (Another stream has subjects of {stream}.)"
)
NO_MESSAGE = 10037
NO_STREAM = 10059
NO_SEQUENCE = 10043
NOT_DELETED, FOUND_NONE = 10057, "no message found"
"""A message could not be deleted, and why: there is none, between others that are there."""
BATCHED = b"NATS/1.0\r\n%bNats-Batch-Id: %b\r\nNats-Batch-Sequence: %d\r\n"


T = TypeVar("T")
log = structlog.get_logger(__name__)


class ApiError(msgspec.Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class Ack(msgspec.Struct, frozen=True):
    seq: int = 0
    duplicate: bool = False
    error: ApiError | None = None


class RawMessage(msgspec.Struct, frozen=True):
    subject: str
    seq: int
    time: str = ""
    data: str = ""
    hdrs: str = ""


class OutgoingMessage(NamedTuple):
    subject: str
    payload: bytes
    headers: bytes
    """Whole lines."""


class ApiReply(msgspec.Struct, frozen=True):
    error: ApiError | None = None
    message: RawMessage | None = None
    purged: int = 0
    total: int = 0
    """Number of subjects, of which a reply has one page."""
    state: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    deliver_subject: str = ""
    """Where the parts of a stream go that is restored."""
    streams: list[str] | None = None
    cluster: dict[str, Any] | None = None
    """Leader and replicas of a stream; None for a single server."""


class StreamMessage(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    subject: str
    data: bytes
    headers: dict[str, str]
    at: float
    """Unix seconds at which the server stored it."""

    @property
    def gone(self) -> bool:
        """Whether it is a marker of a deleted or expired key."""
        return "Nats-Marker-Reason" in self.headers or self.headers.get("KV-Operation") in ("DEL", "PURGE")


class StreamPage(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive messages of a stream, filtered by subject."""

    records: tuple[StreamMessage, ...]
    pending: int


_ack = msgspec.json.Decoder(Ack)
_answer = msgspec.json.Decoder(ApiReply)


class JetStream:
    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def api(self, verb: str, request: dict[str, Any], timeout: float = ANSWER_TIMEOUT) -> ApiReply:
        """Send a request to the server's API.

        Raises:
            StoreRefused: with the server's error number.
            NoResponders: JetStream is not ready.
            BusTimeout: also if the answer is not JSON. BusDown.
        """
        reply = await self._inbox.ask(f"{API}.{verb}", msgspec.json.encode(request), timeout=timeout)
        answer = _read(_answer, verb, reply)
        if answer.error is not None:
            raise StoreRefused(f"{verb}: {answer.error.description}.", number=answer.error.err_code)
        return answer

    async def names(self) -> list[str]:
        """Of all streams."""
        found: list[str] = []
        while True:
            answer = await self.persist(partial(self.api, "STREAM.NAMES", {"offset": len(found)}), READ_TIMEOUT)
            found += answer.streams or []
            if not answer.streams or len(found) >= answer.total:
                return found

    async def send(self, subject: str, data: bytes, timeout: float) -> None:
        """Send a part of a stream that is restored; the last one is empty.

        Raises:
            StoreRefused: with the server's error number. BusTimeout, BusDown, NoResponders.
        """
        reply = await self._inbox.ask(subject, data, timeout=timeout)
        if reply.data and (error := _read(_answer, subject, reply).error) is not None:
            raise StoreRefused(f"{subject}: {error.description}.", number=error.err_code)

    async def ensure_stream(self, config: dict[str, Any], timeout: float = READ_TIMEOUT) -> None:
        """Make a stream, or bring one up to date.

        Raises:
            BusIncomplete: a restore has not come to its end. StoreRefused, BusTimeout, BusDown, NoResponders.
        """

        async def attempt(timeout_s: float) -> None:
            refused = await self._configure("CREATE", config, timeout_s)
            if refused is None:
                return
            if refused.number == SUBJECTS_OVERLAP:
                raise BusIncomplete(INCOMPLETE.format(stream=config["name"]))
            if refused.number != STREAM_EXISTS:
                raise refused
            if config["name"] in KEPT_STREAMS:
                log.warning(
                    "a stream has another configuration than this release's; the operator changes it",
                    stream=config["name"],
                )
                return
            await self._update_stream(config, timeout_s)

        await self.persist(attempt, timeout)

    async def _update_stream(self, config: dict[str, Any], timeout_s: float) -> None:
        refused = await self._configure("UPDATE", config, timeout_s)
        for said, kept in FOR_EVER.items():
            if refused is not None and said in refused.detail:
                # It was made with what this release does not want. All else of the configuration counts.
                config = config | kept
                refused = await self._configure("UPDATE", config, timeout_s)
        if refused is not None:
            raise refused

    async def _configure(self, act: str, config: dict[str, Any], timeout_s: float) -> StoreRefused | None:
        """Why the server does not take the configuration; BusTimeout where it may in a moment."""
        refused: StoreRefused | None = None
        try:
            await self.api(f"STREAM.{act}.{config['name']}", config, timeout_s)
        except StoreRefused as error:
            refused = error
        if refused is not None and refused.number in (NO_PEERS, NOT_AVAILABLE):
            raise BusTimeout(refused.detail)
        return refused

    async def persist(self, attempt: Callable[[float], Awaitable[T]], timeout: float) -> T:
        """The result of `attempt`, which gets its timeout in seconds and is repeated while the bus is unavailable.

        Raises:
            BusDown, BusTimeout, NoResponders: after `timeout` seconds of retries.
        """
        clock = asyncio.get_running_loop().time
        until, pause = clock() + timeout, FIRST_PAUSE_S
        while True:
            try:
                return await attempt(max(0.001, min(until - clock(), ANSWER_TIMEOUT)))
            except (BusDown, BusTimeout, NoResponders):
                if clock() + pause >= until:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    async def store(
        self,
        subject: str,
        payload: bytes,
        *,
        message_id: str = "",
        timeout: float = 10.0,
        headers: dict[str, str] | None = None,
    ) -> int:
        """Publish into the stream of `subject`, repeatedly under one id until the server confirms; the sequence.

        Raises:
            WrongRevision: if `headers` expected another last sequence.
            StoreRefused, MessageTooLarge: at once.
            BusDown, BusTimeout, NoResponders: after `timeout` seconds of retries; it may or may not be stored. This
                includes an earlier write of the subject that stays neither stored nor lost.
        """
        block = header_block({**(headers or {}), "Nats-Msg-Id": message_id or token()})

        async def attempt(timeout_s: float) -> int:
            return _confirmed(subject, await self._inbox.ask(subject, payload, timeout=timeout_s, headers=block))

        return await self.persist(attempt, timeout)

    async def store_together(self, messages: Sequence[OutgoingMessage], *, timeout: float) -> int:
        """Store messages of one stream that allows it, consecutively and in this order, or none of them; one attempt.

        Returns the sequence of the last message.

        Raises:
            WrongRevision: if one of them expected another last sequence of its subject, or that is not settled yet.
            StoreRefused, NoResponders, MessageTooLarge: they are not stored.
            BusDown, BusTimeout: they may or may not be stored.
        """
        batch = token().encode()
        for number, message in enumerate(messages, 1):
            headers = BATCHED % (message.headers, batch, number)
            if number < len(messages):
                self._inbox.post(message.subject, message.payload, headers + b"\r\n")
        headers += b"Nats-Batch-Commit: 1\r\n\r\n"
        reply = await self._inbox.ask(message.subject, message.payload, timeout=timeout, headers=headers)
        try:
            return _confirmed(message.subject, reply)
        except _InProcess as error:
            raise WrongRevision(error.detail) from None

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        """The last message on `subject` as the stream's leader has it; None if there is none."""
        verb = f"STREAM.MSG.GET.{stream}"
        try:
            answer = await self.persist(partial(self.api, verb, {"last_by_subj": subject}), READ_TIMEOUT)
        except StoreRefused as error:
            if error.number == NO_MESSAGE:
                return None
            raise
        return _record_of(answer.message) if answer.message is not None else None

    async def page(
        self, stream: str, subject: str, seq: int, *, messages: int = PAGE_MESSAGES, timeout: float = ANSWER_TIMEOUT
    ) -> StreamPage:
        """The first messages on `subject` from sequence `seq` on.

        Raises:
            BusDown, BusTimeout: also if one of the messages was lost on its way.
            NoResponders: the stream does not exist.
        """
        return await self._page(stream, subject, {"seq": max(1, seq)}, messages, timeout)

    async def page_since(
        self, stream: str, subject: str, since: float, *, messages: int = PAGE_MESSAGES, timeout: float = ANSWER_TIMEOUT
    ) -> StreamPage:
        """The first messages on `subject` that were stored at the unix second `since` or later.

        Raises:
            As `page`.
        """
        start = datetime.fromtimestamp(since, UTC).isoformat()
        return await self._page(stream, subject, {"start_time": start}, messages, timeout)

    async def _page(
        self, stream: str, subject: str, start: dict[str, Any], messages: int, timeout: float
    ) -> StreamPage:
        request = {**start, "next_by_subj": subject, "batch": messages, "max_bytes": PAGE_BYTES}
        replies = await self._inbox.ask_many(
            f"{API}.DIRECT.GET.{stream}", msgspec.json.encode(request), timeout=timeout, is_last=_ends_page
        )
        end = replies.pop()
        if end.status == "503":
            raise NoResponders(f"There is no stream {stream} now.")
        if end.status == "404":
            return StreamPage(records=(), pending=0)
        if end.status != "204":
            raise StoreRefused(f"Reading {stream}: status {end.status} {end.headers.get(DESCRIPTION, '')}.")
        records = tuple(_record(reply) for reply in replies)
        last = records[-1].seq if records else 0
        if int(end.headers.get("Nats-Last-Sequence", last)) != last:
            raise BusTimeout(f"A part of a page of {stream} was lost.")
        return StreamPage(records=records, pending=int(end.headers.get("Nats-Num-Pending", 0)))

    async def delete(self, stream: str, seq: int) -> None:
        await self._remove(stream, seq, erase=False)

    async def delete_overwritten(self, stream: str, seq: int) -> None:
        """Remove a message, and overwrite it in the server's files."""
        await self._remove(stream, seq, erase=True)

    async def _remove(self, stream: str, seq: int, *, erase: bool) -> None:
        request = {"seq": seq, "no_erase": not erase}
        try:
            await self.persist(partial(self.api, f"STREAM.MSG.DELETE.{stream}", request), READ_TIMEOUT)
        except StoreRefused as error:
            is_gone = error.number == NOT_DELETED and FOUND_NONE in error.detail
            if not is_gone and error.number not in (NO_MESSAGE, NO_SEQUENCE):
                raise

    async def depths(self, stream: str, subject: str) -> dict[str, int]:
        """Number of messages on each subject that matches `subject`."""
        found: dict[str, int] = {}
        while True:
            request = {"subjects_filter": subject, "offset": len(found)}
            answer = await self.persist(partial(self.api, f"STREAM.INFO.{stream}", request), READ_TIMEOUT)
            page = (answer.state or {}).get("subjects") or {}
            found |= page
            if not page or len(found) >= answer.total:
                return found

    async def last_sequence(self, stream: str) -> int:
        answer = await self.persist(partial(self.api, f"STREAM.INFO.{stream}", {}), READ_TIMEOUT)
        return int((answer.state or {}).get("last_seq", 0))

    async def span(self, stream: str) -> tuple[int, int]:
        """The first and last sequence that a stream has; (last + 1, last) if it is empty."""
        answer = await self.persist(partial(self.api, f"STREAM.INFO.{stream}", {}), READ_TIMEOUT)
        state = answer.state or {}
        return int(state.get("first_seq", 1)), int(state.get("last_seq", 0))

    async def filled(self, stream: str) -> float:
        """The filled part of the stream's capacity, from 0.0 to 1.0: of bytes or of messages, whichever is larger."""
        answer = await self.persist(partial(self.api, f"STREAM.INFO.{stream}", {}), READ_TIMEOUT)
        state, config = answer.state or {}, answer.config or {}
        shares = ((state.get("bytes", 0), config.get("max_bytes")), (state.get("messages", 0), config.get("max_msgs")))
        return max((used / most for used, most in shares if most and most > 0), default=0.0)

    async def purge(self, stream: str, *, subject: str, below: int) -> int:
        """Remove the messages on `subject` ("": all) with a sequence below `below` (0: all); their number."""
        request = ({"seq": below} if below else {}) | ({"filter": subject} if subject else {})
        answer = await self.persist(partial(self.api, f"STREAM.PURGE.{stream}", request), READ_TIMEOUT)
        return answer.purged


class _InProcess(BusTimeout):
    """See `IN_PROCESS`."""


def _read(decoder: msgspec.json.Decoder[T], of: str, reply: Reply) -> T:
    """What a server answered.

    Raises:
        BusTimeout: it is no answer of a server's, and says nothing of whether the request was heard: it is repeated.
    """
    try:
        return decoder.decode(reply.data)
    except msgspec.DecodeError as error:
        said = f"{reply.status} {reply.data[:SHOWN]!r}"
        raise BusTimeout(f"The answer about {of} cannot be read ({error}): {said}.") from error


def _confirmed(subject: str, reply: Reply) -> int:
    ack = _read(_ack, subject, reply)
    if ack.error is None:
        return ack.seq
    if ack.error.err_code == WRONG_LAST_SEQUENCE:
        raise WrongRevision(f"{subject} was changed by somebody else.")
    if ack.error.err_code in IN_PROCESS:
        raise _InProcess(f"What becomes of {subject} is not known: a write of it is on its way.")
    raise StoreRefused(f"{subject}: {ack.error.description}.", number=ack.error.err_code)


def _ends_page(reply: Reply) -> bool:
    return bool(reply.status)


def _record(reply: Reply) -> StreamMessage:
    headers = reply.headers
    return StreamMessage(
        seq=int(headers["Nats-Sequence"]),
        subject=headers["Nats-Subject"],
        data=reply.data,
        headers=headers,
        at=_unix(headers["Nats-Time-Stamp"]),
    )


def _record_of(message: RawMessage) -> StreamMessage:
    return StreamMessage(
        seq=message.seq,
        subject=message.subject,
        data=base64.b64decode(message.data),
        headers=headers_of(base64.b64decode(message.hdrs)),
        at=_unix(message.time),
    )


def _unix(text: str) -> float:
    whole, _, rest = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + (float(f"0.{rest}") if rest else 0.0)
