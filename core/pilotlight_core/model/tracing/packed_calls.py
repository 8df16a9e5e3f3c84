"""Sampled calls as bytes: what `SampledTimes` has of each, one behind the other, as it is kept, sent and exported.

    kind        2    its place among those of the sheet
    id          2    bytes of it
    mates       2    bytes of them
    (nothing)   2
    ahead       8
    arrived_ns  8
    times      56    total_ms, gateway, queue, start, transport, batch_wait, execute
    and behind these the id, and its mates as msgpack where it has any

They are written once, as a call ends, and read where somebody asks, or by whoever makes spans of them. Where all calls
are kept, what follows a call in memory is these bytes alone, and no object of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from pilotlight_core.model.tracing.kept_call import BatchMates
from pilotlight_core.model.tracing.sampled_call import (
    SampledGroup,
    SampledKind,
    SampledRecord,
    SampledSheet,
    SampledTimes,
)

HEAD = struct.Struct("<HHHxxQQ7d")
LENGTHS = struct.Struct("<xxHH")
MOST_MS = 1e12
"""As `Duration` has it."""
mates_of = msgspec.msgpack.Decoder(BatchMates).decode
packed_mates = msgspec.msgpack.Encoder().encode


class BadSheet(ValueError):
    """What is said to be sampled calls is none."""


def packed_group(group: SampledGroup) -> SampledSheet:
    """Calls of one kind, as a gateway of an earlier release tells of them."""
    records = [
        HEAD.pack(
            0, len(name), len(mates), each.ahead, each.arrived_ns, each.total_ms, each.gateway, each.queue, each.start,
            each.transport, each.batch_wait, each.execute,
        ) + name + mates
        for each in group.calls
        for name, mates in [(each.id.encode(), packed_mates(each.mates) if each.mates else b"")]
    ]  # fmt: skip
    return SampledSheet((group.kind,), len(records), b"".join(records))


def unpacked(kinds: Sequence[SampledKind], records: bytes | bytearray, at: int = 0) -> list[SampledRecord]:
    """The calls from a place on, the oldest first.

    Raises:
        BadSheet: they are not written as above, or are beyond the bounds of `SampledTimes`.
    """
    found: list[SampledRecord] = []
    try:
        while at < len(records):
            place, named, told, ahead, arrived_ns, *times = HEAD.unpack_from(records, at)
            total_ms, gateway, queue, start, transport, batch_wait, execute = times
            begin, middle, at = at + HEAD.size, at + HEAD.size + named, at + HEAD.size + named + told
            if at > len(records) or not all(0.0 <= each <= MOST_MS for each in times):
                raise BadSheet("a call ends before its bytes do, or took no time that can be")
            mates: BatchMates = mates_of(bytes(records[middle:at])) if told else ()
            name = bytes(records[begin:middle]).decode()
            read = SampledTimes(
                name, arrived_ns, total_ms, gateway, queue, start, transport, batch_wait, execute, ahead, mates
            )
            found.append(SampledRecord(kinds[place], read))
    except (struct.error, IndexError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadSheet(str(error)) from error
    return found


def length_at(records: bytearray, at: int) -> int:
    """Bytes of the call that begins there."""
    named, told = LENGTHS.unpack_from(records, at)
    return HEAD.size + int(named) + int(told)
