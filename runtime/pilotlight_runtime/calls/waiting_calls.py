"""The calls that an agent has accepted and not started, readable after its death.

The calls of a killed agent may have run. So `WaitingCalls` notes each call that waits (for its batch, its large input
or its turn) in a memory-mapped file, which the kernel keeps when the process is killed. The node's next agent tells the
origins, which may run those calls elsewhere.

A note is removed before the guest gets its call: a note means "never started", its lack means nothing. Notes of another
boot are ignored, since the kernel may not have written them back.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import msgspec

from pilotlight_core.model.messages.call_messages import Run

SLOT = 192
"""Bytes of a note: its length, then msgpack."""
SLOTS = 8192
"""The most notes (1.5 MiB); further calls have none."""
FREE = 0
NO_NOTE = -1


class WaitingCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    call_id: str
    grant_number: int
    container: str
    gateway: str


class WaitingCalls:
    """The notes of one agent in the file `path`, which no other process uses; `boot` names the machine's boot.

    `left_behind` are the calls that the previous agent had not started when it was killed; empty after another boot.

    Raises:
        OSError: if the file cannot be made, for instance because the disk is full.
    """

    def __init__(self, path: Path, boot: str) -> None:
        self.left_behind = notes_in(path, boot)
        path.unlink(missing_ok=True)
        with path.open("xb+") as file:
            # Allocated, not sparse: a write to a mapped page that finds the disk full would kill the process.
            os.posix_fallocate(file.fileno(), 0, SLOT * (SLOTS + 1))
            self._map = mmap.mmap(file.fileno(), 0)
        self._free = list(range(SLOTS, 0, -1))
        self._write(0, boot.encode())

    def add(self, run: Run) -> int:
        """Note a call. Returns the note's slot, for `remove`; NO_NOTE if there is no room."""
        note = _encoder.encode(WaitingCall(run.call_id, run.grant_number, run.container, run.gateway))
        if len(note) >= SLOT or not self._free:
            return NO_NOTE
        slot = self._free.pop()
        self._write(slot, note)
        return slot

    def remove(self, slot: int) -> None:
        self._map[slot * SLOT] = FREE
        self._free.append(slot)

    def __len__(self) -> int:
        return SLOTS - len(self._free)

    def close(self) -> None:
        self._map.close()

    def _write(self, slot: int, note: bytes) -> None:
        # The length comes last, so that a note torn by a kill does not count.
        start = slot * SLOT
        self._map[start + 1 : start + 1 + len(note)] = note
        self._map[start] = len(note)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(WaitingCall)


def notes_in(path: Path, boot: str) -> tuple[WaitingCall, ...]:
    """The notes in the file; none if it is missing or of another boot."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    notes = [data[at + 1 : at + 1 + data[at]] for at in range(0, len(data) - SLOT + 1, SLOT)]
    if not notes or notes[0] != boot.encode():
        return ()
    found = []
    for note in notes[1:]:
        try:
            found.append(_decoder.decode(note))
        except msgspec.DecodeError:
            continue
    return tuple(found)
