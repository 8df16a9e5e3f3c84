"""Streams are copied by the server while it is written to, and come back with their numbers."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.bus.streams import DEFAULT_LIMITS, bucket_stream, stream_configs
from pilotlight_core.model.subjects import AUDIT_STREAM, JOB_BUCKET, JOB_STREAM, LEASE_BUCKET, TENANCY_BUCKET
from pilotlight_gateway.backups.backup_manifest import BackupRefused
from pilotlight_gateway.backups.snapshot_frames import IDENTIFIER, SnapshotFrames
from pilotlight_gateway.backups.stream_copies import (
    AFTER,
    AFTER_BLOBS,
    BEFORE,
    EPOCHS,
    LEAP,
    copy_stream,
    first_epoch,
    refuse_gap,
    refuse_streams,
    restore_stream,
    streams_of,
)
from pilotlight_supervisor.embedded_bus import embedded_nats

NOW = 1_800_000_000.0
TENANCY, LEASES = bucket_stream(TENANCY_BUCKET), bucket_stream(LEASE_BUCKET)


def judged(snapshot: bytes) -> bool:
    frames = SnapshotFrames()
    frames.follow(snapshot)
    return frames.is_whole


async def test_what_names_others_is_copied_before_them(bus: Bus) -> None:
    """All streams are, and those with an own place are streams of the platform."""
    known = {config["name"] for config in stream_configs(DEFAULT_LIMITS)}

    order = await streams_of(bus)

    assert known <= {*order}
    assert {*BEFORE, *AFTER, *EPOCHS} <= known
    assert order.index(JOB_STREAM) < order.index(bucket_stream(JOB_BUCKET)) < order.index(TENANCY)
    assert order[-2:] == [AUDIT_STREAM, *AFTER_BLOBS]


async def test_a_bucket_comes_back_as_it_was_while_others_wrote(tmp_path: Path) -> None:
    """Every key that was confirmed before is there, under its revision; numbers go on from where they were."""
    async with embedded_nats(tmp_path / "one") as server, connect(server.url, name="x") as bus:
        kv, written = bus.kv(TENANCY_BUCKET), dict[str, int]()
        for number in range(300):
            written[f"key.{number % 200}"] = await kv.put(f"key.{number % 200}", b"x" * 5_000)
        await kv.delete("key.7")
        del written["key.7"]

        async def go_on() -> None:
            while True:
                await kv.put("key.busy", b"x" * 5_000)

        others = asyncio.ensure_future(go_on())
        piece = await copy_stream(bus, TENANCY, tmp_path)
        others.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await others
    assert piece.last_seq >= 301
    data = (tmp_path / piece.file).read_bytes()
    assert data.startswith(IDENTIFIER)
    assert (judged(data), judged(data[:-100]), judged(data[:1_000] + data[2_000:])) == (True, False, False)
    ends = frame_ends(data)
    assert [end for end in ends if judged(data[:end])] == ends[-1:]  # each frame before is whole, too
    assert piece.bytes == (tmp_path / piece.file).stat().st_size

    async with embedded_nats(tmp_path / "other") as server:
        async with connect(server.url, name="x", makes_streams=False) as bus:
            await restore_stream(bus, piece, tmp_path, 1, now=NOW)
            with pytest.raises(BackupRefused, match=f"has {TENANCY} already.*end all processes but nats-server"):
                await refuse_streams(bus, [TENANCY])
            with pytest.raises(BackupRefused, match=f"does not take {TENANCY}"):
                await restore_stream(bus, piece, tmp_path, 1, now=NOW)
        async with connect(server.url, name="gateway") as bus:  # which makes and updates streams
            kv = bus.kv(TENANCY_BUCKET)
            found = {key: entry.revision for key, entry in (await kv.entries()).items()}
            assert {key: found.get(key) for key in written} == written
            assert "key.7" not in found
            assert await kv.put("key.new", b"") > piece.last_seq


def frame_ends(data: bytes) -> list[int]:
    """Where the frames of a snapshot end."""
    ends, at = list[int](), 0
    while at < len(data):
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "little")
        ends.append(at)
    return ends


async def test_epochs_are_higher_than_any_that_were_given(tmp_path: Path) -> None:
    """Also after the server's next start; and what was leased is free."""
    async with embedded_nats(tmp_path / "one") as server, connect(server.url, name="x") as bus:
        former = await bus.kv(LEASE_BUCKET).create("controller", b"one")
        piece = await copy_stream(bus, LEASES, tmp_path)

    async with (
        embedded_nats(tmp_path / "other") as server,
        connect(server.url, name="x", makes_streams=False) as bus,
    ):
        await restore_stream(bus, piece, tmp_path, 1, now=NOW)
    async with embedded_nats(tmp_path / "other") as server, connect(server.url, name="gateway") as bus:
        assert await bus.kv(LEASE_BUCKET).create("controller", b"other") >= former + LEAP + NOW * 1_000


def test_a_second_restore_of_a_copy_gives_higher_epochs() -> None:
    """Than the first one did until then, at most a thousand a second."""
    given_by_first = first_epoch(7, NOW) + 60 * 1_000

    assert first_epoch(7, NOW + 61.0) > given_by_first
    assert first_epoch(7, NOW) > 7 + LEAP


def test_a_part_that_did_not_come_is_noticed() -> None:
    """The last word of each part's reply subject is its number, from 1 on; the last part has none."""
    refuse_gap("USAGE", "$JS.SNAPSHOT.ACK.x.524288.1", 1)
    refuse_gap("USAGE", "$JS.SNAPSHOT.ACK.x.524288.12", 12)
    refuse_gap("USAGE", "", 13)
    for reply in ("$JS.SNAPSHOT.ACK.x.524288.3", "$JS.SNAPSHOT.ACK.x.524288.12"):
        with pytest.raises(BackupRefused, match="Part 2 of the copy of USAGE has not come"):
            refuse_gap("USAGE", reply, 2)


async def test_a_copy_that_is_no_stream_is_not_taken(tmp_path: Path) -> None:
    """The server says so, and nothing is there afterwards."""
    async with embedded_nats(tmp_path / "one") as server, connect(server.url, name="x") as bus:
        await bus.kv(TENANCY_BUCKET).put("a", b"1")
        piece = await copy_stream(bus, TENANCY, tmp_path)
    (tmp_path / piece.file).write_bytes(b"\0" * piece.bytes)

    async with (
        embedded_nats(tmp_path / "other") as server,
        connect(server.url, name="x", makes_streams=False) as bus,
    ):
        with pytest.raises(BackupRefused, match=f"does not take {TENANCY}"):
            await restore_stream(bus, msgspec.structs.replace(piece), tmp_path, 1, now=NOW)
        await refuse_streams(bus, [TENANCY])
