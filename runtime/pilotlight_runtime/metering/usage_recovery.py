"""The usage that a killed agent had told callers of and not written. Pure.

The shares of the calls that ended in a container make a busy interval of its slice that ends with the last of them.
Whatever else of the device the agent had not written is the operator's: no tenant pays for what a death cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, groupby, islice, pairwise
from operator import attrgetter

import msgspec

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.units import NS_PER_S, WHOLE_DEVICE
from pilotlight_runtime.metering.meter import MAX_SHARES
from pilotlight_runtime.metering.metered_slice import OPERATOR, EndedShare, MeteredSlice, SliceOwner
from pilotlight_runtime.metering.usage_log import UsageRecord
from pilotlight_runtime.metering.usage_metering import by_tenant


def recovered_usage(left_behind: Iterable[EndedShare], metered: Mapping[str, int]) -> list[UsageRecord]:
    """What ended calls used that is in no record yet.

    Args:
        left_behind: the notes of one killed agent.
        metered: device -> the instant up to which the log has all of it, in ns of the boot clock.
    """
    devices: dict[str, list[EndedShare]] = defaultdict(list)
    for note in left_behind:
        if note.ended_ns > metered.get(note.lease.device, -1):
            devices[note.lease.device].append(note)
    events = [e for device, notes in devices.items() for e in _Device(notes, metered.get(device)).events()]
    instance = events[0].id.partition(".")[0] if events else ""
    return [
        UsageRecord(id=f"{instance}.recovered.{number}", tenant=tenant, events=part)
        for number, (tenant, part) in enumerate(by_tenant(events), 1)
    ]


class _Interval(msgspec.Struct, frozen=True, kw_only=True):
    lease: MeteredSlice
    owner: SliceOwner
    t0: int
    t1: int
    shares: tuple[CallShare, ...]


class _Device:
    """What one device lacks. `notes` ended after `metered_ns`, where its records end; None: it has none."""

    def __init__(self, notes: list[EndedShare], metered_ns: int | None) -> None:
        self._notes = sorted(notes, key=attrgetter("ended_ns"))
        self._metered_ns = metered_ns
        self._newest = self._notes[-1]
        self._numbers = count(1)

    def events(self) -> list[UsageEvent]:
        """Intervals that make up the whole device, from the end of its records to the last end of a call."""
        slices: dict[str, list[EndedShare]] = defaultdict(list)
        for note in self._notes:
            slices[note.lease.slice].append(note)
        busy = [part for notes in slices.values() for part in self._busy(notes)]
        return [*map(self._event, busy), *self._rest(busy)]

    def _busy(self, notes: list[EndedShare]) -> Iterator[_Interval]:
        """The busy intervals of a slice: of each container those up to its last end of a call."""
        for owner, of_owner in groupby(notes, key=attrgetter("owner")):
            run = list(of_owner)
            t1, parts = run[-1].ended_ns - sum(map(self._ns, run)), iter(run)
            while part := tuple(islice(parts, MAX_SHARES)):
                shares = tuple(map(self._share, part))
                t0, t1 = t1, t1 + sum(share.ns for share in shares)
                yield _Interval(lease=part[0].lease, owner=owner, t0=t0, t1=t1, shares=shares)

    def _ns(self, note: EndedShare) -> int:
        """A call's nanoseconds that are in no record: the last checkpoint may not have come to disk."""
        is_on_disk = self._metered_ns is not None and note.checkpoint_ns <= self._metered_ns
        return note.share.ns if is_on_disk else note.share.ns + note.checkpoint_share_ns

    def _share(self, note: EndedShare) -> CallShare:
        ns, earlier = self._ns(note), note.share.earlier
        return msgspec.structs.replace(note.share, ns=ns, earlier=max(0, earlier - (ns - note.share.ns)))

    def _rest(self, busy: list[_Interval]) -> Iterator[UsageEvent]:
        first = min(part.t0 for part in busy) if self._metered_ns is None else self._metered_ns
        bounds = sorted({first, *(part.t0 for part in busy), *(part.t1 for part in busy)})
        for t0, t1 in pairwise(bounds):
            ppm = WHOLE_DEVICE - sum(part.lease.ppm for part in busy if part.t0 <= t0 < part.t1)
            if ppm > 0:
                of = self._newest.lease
                lease = msgspec.structs.replace(of, slice=f"{of.device}.rest", ppm=ppm)
                yield self._event(_Interval(lease=lease, owner=OPERATOR, t0=t0, t1=t1, shares=()))

    def _event(self, part: _Interval) -> UsageEvent:
        lease, owner, newest = part.lease, part.owner, self._newest
        return UsageEvent(
            id=f"{lease.instance}.{lease.slice}.recovered.{next(self._numbers)}",
            node=lease.node,
            device=lease.device,
            slice=lease.slice,
            ppm=lease.ppm,
            price=lease.price,
            state=LeaseState.BUSY if owner.tenant else LeaseState.FREE,
            t0=part.t0,
            t1=part.t1,
            ended_at=newest.ended_at - (newest.ended_ns - part.t1) / NS_PER_S,
            tenant=owner.tenant,
            app=owner.app,
            function=owner.function,
            version=owner.version,
            container=owner.container,
            shares=part.shares,
            wall_ns=newest.wall_ns - (newest.ended_ns - part.t1) if newest.wall_ns else 0,
            purpose=owner.purpose,
            used=bool(part.shares),
            memory=owner.memory,
            region=lease.region,
            zone=lease.zone,
            purchase=lease.purchase,
            tags=owner.tags,
            core_ppm=owner.core_ppm,
            gib_ppm=owner.gib_ppm,
        )
