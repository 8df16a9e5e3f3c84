"""The agent's append log of usage: on disk before it is on the bus, kept until the bus has it.

A record is `u32 length, u32 crc32, msgpack of UsageRecord`, little-endian. Files are numbered; records are appended to
the last one. Opening the log cuts off an append that a crash tore, as a whole, so that all parts of a device are
metered up to the same instant. The file `acknowledged` holds how far the USAGE stream has taken the records; what a
crash repeats, the stream drops by its id.

All methods block; the agent calls them in a thread, one at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections import deque
from pathlib import Path

import msgspec

from pilotlight_core.model.messages.usage import UsageEvent
from pilotlight_runtime.metering.ended_shares import frame_of, frames_in

ROTATE_BYTES = 8 * 2**20
"""A file of this size, once acknowledged, is left behind for a new one."""

FRESH_BYTES = 2 * 2**20
"""Of the last records, kept in memory: while the stream keeps up, none is read from the disk again."""

FORGET_NS = 600 * 10**9
"""A device that has not been metered for so long while others were has gone."""


class UsageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the bus: `id` is its Nats-Msg-Id, `tenant` who pays ("" is the operator)."""

    id: str
    tenant: str
    events: tuple[UsageEvent, ...]
    more: bool = False
    """Another record follows that was appended with it."""


class AcknowledgedOffset(msgspec.Struct, frozen=True, kw_only=True):
    number: int = 1
    offset: int = 0
    """Bytes of it that the stream has taken."""
    boot: str = ""
    """The boot of the machine whose clock `devices` is of."""
    devices: dict[str, int] = {}
    """device -> the instant up to which it has been metered, in ns of the boot clock."""


class PendingRecord(msgspec.Struct, frozen=True, kw_only=True):
    record: UsageRecord
    end: int


class UsageLog:
    """One agent's log in `folder`, which no other process uses. `boot` names the running clock's boot."""

    def __init__(self, folder: Path, boot: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        mark, self.is_marked = _read_mark(folder)
        """Whether it is known how far devices have been metered: the mark can be read, or there is no log."""
        self._path = _path(folder, mark.number)
        for path in folder.glob("*.log"):
            if path.name < self._path.name:  # taken whole, but not removed because of a crash
                path.unlink()
        whole = _whole_bytes(self._path)
        self.cut_bytes = _cut(self._path, whole)
        """The bytes that opening it cut off."""
        self._file = self._path.open("ab")
        self._fresh: deque[tuple[int, PendingRecord]] = deque()
        """The last records, each with where it begins."""
        devices = dict(mark.devices) if mark.boot == boot else {}
        self._mark = AcknowledgedOffset(number=mark.number, offset=min(mark.offset, whole), boot=boot, devices=devices)
        if mark.boot == boot:
            for pending in self.pending(sys.maxsize):
                self._remember(pending.record)
        _write_mark(folder, self._mark)
        self.unacknowledged_bytes = whole - self._mark.offset
        """Bytes of records that the stream has not taken."""

    @property
    def metered(self) -> dict[str, int]:
        """device -> how far it has been metered, in ns of this boot's clock."""
        return self._mark.devices

    def append(self, records: list[UsageRecord]) -> None:
        """Write and sync `records`, all of them or none.

        Raises:
            OSError: if the disk does not take them; none of them counts then.
        """
        start = at = self._file.tell()
        written: list[tuple[int, PendingRecord]] = []
        try:
            for left, record in zip(range(len(records) - 1, -1, -1), records, strict=True):
                marked = msgspec.structs.replace(record, more=True) if left else record
                frame = frame_of(msgspec.msgpack.encode(marked))
                self._file.write(frame)
                written.append((at, PendingRecord(record=marked, end=at + len(frame))))
                at += len(frame)
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError:
            self._reopen(start)
            raise
        self.unacknowledged_bytes = self._file.tell() - self._mark.offset
        self._fresh.extend(written)
        while self._fresh and at - self._fresh[0][0] > FRESH_BYTES:
            self._fresh.popleft()
        for record in records:
            self._remember(record)

    def pending(self, limit: int) -> list[PendingRecord]:
        """The oldest records that the stream has not taken, at most `limit`."""
        while self._fresh and self._fresh[0][0] < self._mark.offset:
            self._fresh.popleft()
        if self._fresh and self._fresh[0][0] == self._mark.offset:
            return [record for _, record in itertools.islice(self._fresh, limit)]
        with self._path.open("rb") as file:
            file.seek(self._mark.offset)
            return [
                PendingRecord(record=_decoder.decode(data), end=end)
                for data, end in itertools.islice(frames_in(file), limit)
            ]

    def acknowledge(self, end: int) -> None:
        """The stream has taken everything up to `end`; a large file that it has taken whole is removed."""
        self._mark = msgspec.structs.replace(self._mark, offset=end)
        done = self._path if end >= ROTATE_BYTES and end == self._file.tell() else None
        if done:
            self._file.close()
            self._mark = msgspec.structs.replace(self._mark, number=self._mark.number + 1, offset=0)
            self._path = _path(self._folder, self._mark.number)
            self._file = self._path.open("ab")
            self._fresh.clear()
        self.unacknowledged_bytes = self._file.tell() - self._mark.offset
        self._forget()
        _write_mark(self._folder, self._mark)
        if done:
            done.unlink()

    def close(self) -> None:
        self._file.close()

    def _remember(self, record: UsageRecord) -> None:
        # Records are by tenant, so the last of them need not hold a device's last event.
        devices = self._mark.devices
        for event in record.events:
            devices[event.device] = max(event.t1, devices.get(event.device, 0))

    def _forget(self) -> None:
        devices = self._mark.devices
        newest = max(devices.values(), default=0)
        for name in [name for name, at in devices.items() if newest - at > FORGET_NS]:
            del devices[name]

    def _reopen(self, size: int) -> None:
        # What is buffered must not be written by a later flush: the descriptor goes first.
        with contextlib.suppress(OSError):
            self._file.close()
        os.truncate(self._path, size)
        self._file = self._path.open("ab")


class _Head(msgspec.Struct, frozen=True):
    more: bool = False


_decoder = msgspec.msgpack.Decoder(UsageRecord)
_heads = msgspec.msgpack.Decoder(_Head)


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:08}.log"


def _whole_bytes(path: Path) -> int:
    """The end of the last complete append."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return max((end for data, end in frames_in(file) if not _heads.decode(data).more), default=0)


def _cut(path: Path, size: int) -> int:
    if not path.exists() or (torn := path.stat().st_size - size) <= 0:
        return 0
    os.truncate(path, size)
    return torn


def _read_mark(folder: Path) -> tuple[AcknowledgedOffset, bool]:
    """The mark, and whether it says all; one that cannot be read is made anew."""
    try:
        return msgspec.json.decode((folder / "acknowledged").read_bytes(), type=AcknowledgedOffset), True
    except (OSError, msgspec.DecodeError):
        numbers = [int(path.stem) for path in folder.glob("*.log") if path.stem.isdigit()]
        return AcknowledgedOffset(number=min(numbers, default=1)), not numbers


def _write_mark(folder: Path, mark: AcknowledgedOffset) -> None:
    # Not synced: a mark lost in a crash repeats records, and the stream drops repeated ids.
    new = folder / "acknowledged.new"
    new.write_bytes(msgspec.json.encode(mark))
    new.replace(folder / "acknowledged")
