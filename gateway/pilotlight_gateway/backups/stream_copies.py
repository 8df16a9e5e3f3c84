"""Copies of JetStream's streams by the server's own snapshots, which keep sequence numbers and instants.

A snapshot is read from the stream's files while others write to it; the server sends it in parts, and waits for the
copy where that is slower.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pilotlight_core.bus import Bus, StoreRefused
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_gateway.backups.backup_manifest import PIECE_BYTES, BackupPiece, BackupRefused, PieceWriter
from pilotlight_gateway.backups.snapshot_frames import SnapshotFrames

BEFORE = (
    subjects.JOB_STREAM,
    bucket_stream(subjects.IDEMPOTENCY_BUCKET),
    bucket_stream(subjects.DELIVERY_BUCKET),
    bucket_stream(subjects.BATCH_BUCKET),
    bucket_stream(subjects.JOB_BUCKET),
)
"""Those that name what is in others: they are copied first, so that what they name was there."""
AFTER = (
    bucket_stream(subjects.REGISTRY_BUCKET),
    bucket_stream(subjects.WEBHOOK_BUCKET),
    bucket_stream(subjects.SECRET_BUCKET),
    bucket_stream(subjects.TENANCY_BUCKET),
    bucket_stream(subjects.PLATFORM_BUCKET),
    subjects.AUDIT_STREAM,
    bucket_stream(subjects.BLOB_KEY_BUCKET),
)
"""Those that are named by others; then who did all of it, and at last what opens blobs."""
AFTER_BLOBS = (bucket_stream(subjects.BLOB_KEY_BUCKET),)
"""Those that are copied after the blobs, so that each that is in the copy opens."""
EPOCHS = (bucket_stream(subjects.LEASE_BUCKET), bucket_stream(subjects.SHARD_BUCKET))
"""Whose sequence numbers are epochs. Nobody holds what they have any more."""
LAST = bucket_stream(subjects.TENANCY_BUCKET)
"""It is restored last, since it is the first that a gateway asks for when it starts."""
RESTORE_MARK = "RESTORING"
"""A stream that is there until all else is restored. It has a subject of the last one's, which nobody can make beside
it: so no gateway of whichever release or host starts on a part of a platform."""
LEAP = 10**10
"""By so much epochs are higher than in the copy, whatever was given since: 115 days of a thousand a second. The
milliseconds of the instant come on top, so that a second restore of one copy gives higher ones than the first.
"""
MS_PER_S = 1_000
CHUNK_BYTES = PIECE_BYTES // 2
"""How much of a stream is in one message."""
PART_S = 30.0
"""How long a part of a copy may take."""
LOAD_S = 600.0
"""How long a server may take to read what it was sent."""


class _Part(NamedTuple):
    reply: str
    data: bytes
    status: str


async def streams_of(bus: Bus) -> list[str]:
    """The streams that there are, in the order in which they are copied."""
    names = [str(name) for name in await bus.jetstream.names()]
    middle = len(BEFORE)

    def place(name: str) -> tuple[int, str]:
        if name in BEFORE:
            return BEFORE.index(name), name
        return (middle + 1 + AFTER.index(name), name) if name in AFTER else (middle, name)

    return sorted(names, key=place)


async def copy_stream(bus: Bus, stream: str, folder: Path) -> BackupPiece:
    """Copy a stream into a file of `folder`.

    Raises:
        BackupRefused: the server did not send it all. BusError.
    """
    parts: asyncio.Queue[_Part] = asyncio.Queue()
    subject = f"_INBOX.{token(12)}.copy"

    def receive(_: str, reply: str, data: bytes, headers: dict[str, str] | None) -> None:
        parts.put_nowait(_Part(reply, data, (headers or {}).get("Status", "")))

    subscription = await bus.subscribe_data(subject, receive)
    try:
        with PieceWriter(folder / f"{stream}.stream") as file:
            request = {"deliver_subject": subject, "chunk_size": CHUNK_BYTES, "no_consumers": True, "jsck": True}
            begun = await bus.jetstream.api(f"STREAM.SNAPSHOT.{stream}", request, PART_S)
            frames = SnapshotFrames()
            for number in itertools.count(1):
                part = await _next(parts, stream)
                if not part.data:
                    break
                refuse_gap(stream, part.reply, number)
                frames.follow(part.data)
                await asyncio.to_thread(file.write, part.data)
                if part.reply:
                    bus.publish_data(part.reply, b"")
            if part.status not in ("", "204"):
                raise BackupRefused(f"The bus ended the copy of {stream} with status {part.status}: try again.")
            if not frames.is_whole:
                raise BackupRefused(f"A part of the copy of {stream} has not come: try again.")
    finally:
        await subscription.unsubscribe()
    state = begun.state or {}
    return BackupPiece(
        kind="stream", name=stream, file=file.path.name, bytes=file.bytes, sha256=file.sha256,
        entries=int(state.get("messages", 0)), config=begun.config or {}, state=state,
    )  # fmt: skip


def refuse_gap(stream: str, reply: str, number: int) -> None:
    """Check that a part of a copy is the one with this number.

    The subject on which the server wants it confirmed ends in it; the last part it does not want confirmed.

    Raises:
        BackupRefused: it is not.
    """
    if reply and reply.rpartition(".")[2] != str(number):
        raise BackupRefused(f"Part {number} of the copy of {stream} has not come: try again.")


async def _next(parts: asyncio.Queue[_Part], stream: str) -> _Part:
    try:
        async with asyncio.timeout(PART_S):
            return await parts.get()
    except TimeoutError:
        raise BackupRefused(f"The bus sent nothing more of {stream} for {PART_S:g} s: try again.") from None


async def restore_stream(bus: Bus, piece: BackupPiece, folder: Path, replicas: int, *, now: float) -> None:
    """Bring a stream back that is not there, on so many servers (0: as many as it was on). `now` is of the wall clock.

    Raises:
        BackupRefused: the server does not take it. BusError.
    """
    config = piece.config | ({"num_replicas": replicas} if replicas else {})
    try:
        begun = await bus.jetstream.api(
            f"STREAM.RESTORE.{piece.name}", {"config": config, "state": piece.state}, PART_S
        )
        with (folder / piece.file).open("rb") as file:
            while data := await asyncio.to_thread(file.read, CHUNK_BYTES):
                await bus.jetstream.send(begun.deliver_subject, data, PART_S)
        await bus.jetstream.send(begun.deliver_subject, b"", LOAD_S)
        if piece.name in EPOCHS:
            await bus.jetstream.purge(piece.name, subject="", below=first_epoch(piece.last_seq, now))
    except StoreRefused as error:
        raise BackupRefused(f"The bus does not take {piece.name}: {error.detail}") from None


def first_epoch(last_seq: int, now: float) -> int:
    """The first that a stream of epochs gives which is restored at `now`."""
    return last_seq + LEAP + int(now * MS_PER_S)


async def mark_restore(bus: Bus) -> None:
    """Say on the bus that what is there is a part, until `remove_restore_mark`.

    Raises:
        BackupRefused: the bus does not take it. BusError.
    """
    config = {
        "name": RESTORE_MARK, "subjects": [key_subject(subjects.TENANCY_BUCKET, "restoring")], "storage": "file",
        "max_msgs": 1, "max_bytes": 1_024, "discard": "new",
    }  # fmt: skip
    try:
        await bus.jetstream.api(f"STREAM.CREATE.{RESTORE_MARK}", config, PART_S)
    except StoreRefused as error:
        raise BackupRefused(f"The bus does not take {RESTORE_MARK}: {error.detail}") from None


async def remove_restore_mark(bus: Bus) -> None:
    """All is there, but for the last stream. Raises BusError."""
    await bus.jetstream.api(f"STREAM.DELETE.{RESTORE_MARK}", {}, PART_S)


async def refuse_streams(bus: Bus, names: Sequence[str]) -> None:
    """Check that none of these streams is there.

    Raises:
        BackupRefused: one is. BusError.
    """
    present = {*await bus.jetstream.names()}
    if RESTORE_MARK in present:
        raise BackupRefused(
            f"The bus has {RESTORE_MARK}: a restore into it has begun and did not come to its end, so what is there is "
            "a part only. End all processes but nats-server, give nats-server an empty folder, and restore again."
        )
    if there := sorted({*names} & present):
        raise BackupRefused(
            f"The bus has {there[0]} already, and a backup is restored into an empty one only: end all processes but "
            "nats-server (a gateway makes the streams again), and give nats-server an empty folder."
        )
