"""What each slice was doing, to the nanosecond, and who pays. Pure: instants are ns of the node's boot clock.

A slice is always in one state. `transition` sets FREE, BLANK, PROVISIONING, LOADING, IDLE, DRAINING and, of a part of
the host's memory, PARKED; while calls run it is BUSY instead, and that time is split among them.

*The split.* Virtual time is what one call has been given since the beginning: with k calls running it advances by 1/k
ns per ns, so a call's share is the difference between its end and its start. It is whole ns; the remainder of a
division (less than k) is carried into the next one, and goes to the last call to end, or to the eldest ones at a
checkpoint. So shares sum to the busy time exactly, and no share is off by more than 1 ns per event.

*Windows.* Events are made when the owner or the state set by `transition` changes, and at each checkpoint. A window
that was in turn busy and idle gives two events, the busy time after the rest: a busy second costs two events, not two
per call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.units import NS_PER_S
from pilotlight_runtime.metering.metered_slice import OPERATOR, EndedShare, MeteredSlice, SliceOwner

MAX_SHARES = 1000
"""Of one event, so that it stays well below the size of a message of the bus."""
LOST = "died"
"""The outcome of calls that were running when their container ended."""


class MeterMisuse(ValueError):
    """An event that cannot happen in the meter's state."""


SPOT = Purchase.SPOT.value
NOTHING: dict[str, Any] = {}
"""Neither tags nor units. Nobody changes it."""


class _Running:
    __slots__ = (
        "billed", "billed_at_last", "billed_on_disk", "cold_us", "kept", "key", "parent", "resumed", "shadow", "since",
        "tags", "tenant",
    )  # fmt: skip

    def __init__(
        self, tenant: str, key: str, tags: dict[str, str], cold_us: int, since: int, parent: str, *, shadow: bool,
        resumed: bool,
    ) -> None:  # fmt: skip
        self.tenant = tenant
        self.key = key
        self.tags = tags
        self.cold_us = cold_us
        self.shadow = shadow
        self.resumed = resumed
        self.parent = parent
        self.since = since
        """Virtual time up to which its share has gone into events."""
        self.billed = 0
        """Nanoseconds of its share that have gone into events."""
        self.billed_at_last = 0
        """Of these, up to the last checkpoint."""
        self.billed_on_disk = 0
        """Of these, up to the last checkpoint but one that is known to be on disk."""
        self.kept = 0
        """Nanoseconds of its share up to what would outlive the container."""


OWNED = (LeaseState.LOADING, LeaseState.IDLE, LeaseState.DRAINING, LeaseState.PARKED)
"""The states that a tenant pays for, beside BUSY. For PROVISIONING whoever is known to have the slice pays."""


class SliceMeter:
    """The meter of one slice. It starts FREE at `at_ns`: after a crash, where the last record ends."""

    def __init__(
        self,
        lease: MeteredSlice,
        *,
        at_ns: int,
        wall_offset_ns: int = 0,
        numbers: Iterator[int] | None = None,
        on_ended: Callable[[EndedShare], None] | None = None,
    ) -> None:
        """`numbers` are those of its events, for meters that share them; `on_ended` is told of each call that ends."""
        self.lease = lease
        self._on_ended = on_ended
        self.wall_offset_ns = wall_offset_ns
        """Unix nanoseconds at the boot clock's zero; set anew when the clock was set."""
        self._state = LeaseState.FREE
        self._owner = OPERATOR
        self._used = False  # whether the owner's container has begun a call since it is there for its purpose
        self._running: dict[str, _Running] = {}
        self._ended: list[CallShare] = []
        self._virtual = 0
        self._carry = 0
        self._began = self._window = self._now = self._checkpoint_ns = at_ns
        self._busy = 0  # ns of the present window in which calls ran
        self._closed: list[UsageEvent] = []
        self._numbers = numbers or itertools.count(1)
        self._metered = 0  # ns that have gone into events

    @property
    def state(self) -> LeaseState:
        return LeaseState.BUSY if self._running else self._state

    @property
    def used(self) -> bool:
        """Whether the owner's container has begun a call since it is there for its purpose."""
        return self._used

    @property
    def price(self) -> str:
        """The price id of the slice."""
        return self.lease.price

    def transition(
        self,
        state: LeaseState,
        at_ns: int,
        owner: SliceOwner = OPERATOR,
    ) -> None:
        """Put the slice in `state` for `owner` from `at_ns` on, whenever no calls run.

        Running calls go on unless the container changes.

        Raises:
            MeterMisuse: for BUSY, which only calls make; for an owned state without tenant, or the reverse.
        """
        fits = state is LeaseState.PROVISIONING or (state in OWNED) is bool(owner.tenant)
        if state is LeaseState.BUSY or not fits:
            raise MeterMisuse(f"a slice cannot be {state.value} for tenant {owner.tenant!r}")
        if (state, owner) == (self._state, self._owner):
            return
        self._advance(at_ns)
        if owner.container != self._owner.container:
            for call in list(self._running):
                self.call_ended(call, LOST, at_ns)
        self._close()
        self._used = self._used and owner.container == self._owner.container
        self._state, self._owner = state, owner

    def keep(self, owner: SliceOwner, at_ns: int) -> None:
        """If the owner's container has the slice, it is there for another reason from `at_ns` on, as if unused."""
        if owner.container != self._owner.container:
            return
        self._advance(at_ns)
        self._close()
        self._owner, self._used = owner, not all(running.shadow for running in self._running.values())

    def call_started(
        self,
        call_id: str,
        tenant: str,
        at_ns: int,
        *,
        key: str = "",
        tags: dict[str, str] = NOTHING,
        cold_us: int = 0,
        shadow: bool = False,
        parent: str = "",
        resumed: bool = False,
    ) -> None:
        """The container works on a call of `tenant` from `at_ns` on; `key` and what follows are for the ledger.

        Raises:
            MeterMisuse: if it does already, or the slice has no owner.
        """
        if call_id in self._running or not self._owner.tenant:
            raise MeterMisuse(f"{call_id} cannot start on a slice that is {self.state.value}")
        self._advance(at_ns)
        # What is there for a guess stays one: nobody has asked for a shadow.
        self._used = self._used or not shadow
        self._running[call_id] = _Running(
            tenant, key, tags, cold_us, self._virtual, parent, shadow=shadow, resumed=resumed
        )

    def keep_work(self, call_ids: Sequence[str], at_ns: int) -> None:
        """What calls have done up to now outlives their container: events of their streams were sent, or states saved.

        Raises:
            MeterMisuse: if one is not running.
        """
        self._advance(at_ns)
        for call_id in call_ids:
            running = self._running.get(call_id)
            if running is None:
                raise MeterMisuse(f"{call_id} is not running")
            running.kept = running.billed + self._virtual - running.since

    def call_ended(
        self,
        call_id: str,
        outcome: str,
        at_ns: int,
        batch_size: int = 1,
        *,
        fault: Fault = Fault.NONE,
        units: dict[str, int] = NOTHING,
        moved: bool = False,
        is_lost: bool = False,
    ) -> Spent:
        """The container has ended a call; returns the sum of its shares in all events, or of what is paid of them.

        `fault`, `units`, which the function counted of it, and whether it was `moved` elsewhere are for the ledger.
        `is_lost`: by the platform's fault, but for what it has kept, which alone is returned unless that is nothing.

        Raises:
            MeterMisuse: if it was not running.
        """
        running = self._running.get(call_id)
        if running is None:
            raise MeterMisuse(f"{call_id} is not running")
        self._advance(at_ns)
        del self._running[call_id]
        ns = self._virtual - running.since
        if not self._running:
            ns += self._carry
            self._carry = 0
        total = running.billed + ns
        kept = running.kept if is_lost else total
        if is_lost and not kept:
            kept, fault = total, Fault.PLATFORM
        self._end_part(call_id, running, 0, kept, total, outcome, batch_size, fault, units, moved=moved)
        if kept < total:
            self._end_part(
                call_id, running, kept, total, total, outcome, batch_size, Fault.PLATFORM, NOTHING, moved=moved
            )
        if len(self._ended) >= MAX_SHARES:
            self._close()
        lease, owner = self.lease, self._owner
        return Spent(
            ns=kept, ppm=lease.ppm, price=lease.price, batch_size=batch_size,
            core_ppm=owner.core_ppm, gib_ppm=owner.gib_ppm,
            fault=Fault.PLATFORM if fault is Fault.PLATFORM or running.shadow else Fault.NONE,
            purchase=lease.purchase if lease.purchase == SPOT else "", resumed=running.resumed,
        )  # fmt: skip

    def _end_part(
        self, call_id: str, running: _Running, begin: int, end: int, total: int, outcome: str, batch_size: int,
        fault: Fault, units: dict[str, int], *, moved: bool,
    ) -> None:  # fmt: skip
        """End what lies between two of a call's `total` nanoseconds: for events, and in case the agent is killed."""
        ns = _overlap(begin, end, running.billed, total)
        share = CallShare(
            call_id, running.tenant, ns, outcome, batch_size, running.key, running.tags, fault, units,
            end - begin - ns, 0 if begin else running.cold_us, running.shadow, running.parent, moved, running.resumed,
        )  # fmt: skip
        self._ended.append(share)
        if self._on_ended is None:
            return
        since_last, wall_ns = _overlap(begin, end, running.billed_at_last, total), self.wall_offset_ns + self._now
        earlier = end - begin - since_last
        self._on_ended(
            EndedShare(
                lease=self.lease,
                owner=self._owner,
                share=share if since_last == ns else msgspec.structs.replace(share, ns=since_last, earlier=earlier),
                checkpoint_ns=self._checkpoint_ns,
                checkpoint_share_ns=_overlap(begin, end, running.billed_on_disk, running.billed_at_last),
                ended_ns=self._now,
                ended_at=wall_ns / NS_PER_S,
                wall_ns=wall_ns,
            )
        )

    def checkpoint(self, at_ns: int, *, is_last_on_disk: bool = True) -> list[UsageEvent]:
        """All events up to `at_ns` that have not been returned yet, in order.

        `is_last_on_disk`: what the last call returned is.
        """
        self._advance(at_ns)
        self._close()
        self._checkpoint_ns = self._now
        for running in self._running.values():
            if is_last_on_disk:
                running.billed_on_disk = running.billed_at_last
            running.billed_at_last = running.billed
        events, self._closed = self._closed, []
        return events

    @property
    def is_unchanged(self) -> bool:
        """Whether the slice has been in one state and no call has run since the last checkpoint."""
        return not (self._running or self._closed or self._ended or self._busy)

    @property
    def began(self) -> int:
        return self._began

    @property
    def now(self) -> int:
        return self._now

    @property
    def metered_ns(self) -> int:
        """Nanoseconds from the beginning that are in events, or will be by the next checkpoint."""
        return self._metered + (self._now - self._window)

    def check_integrity(self) -> None:
        """Raise AssertionError unless every nanosecond is accounted for once."""
        given = sum(share.ns for share in self._ended)
        open_shares = sum(self._virtual - running.since for running in self._running.values())
        if given + open_shares + self._carry != self._busy:
            raise AssertionError(
                f"{self.lease.slice}: {given} + {open_shares} + {self._carry} ns is not {self._busy} ns"
            )
        if self.metered_ns != self._now - self._began or not 0 <= self._busy <= self._now - self._window:
            raise AssertionError(f"{self.lease.slice}: {self.metered_ns} of {self._now - self._began} ns are metered")

    def _advance(self, at_ns: int) -> None:
        """Let time pass up to `at_ns`; it never goes back."""
        passed = at_ns - self._now
        if passed > 0:
            self._now = at_ns
        else:
            passed = 0
        if not self._running:
            return
        self._busy += passed
        each, self._carry = divmod(passed + self._carry, len(self._running))
        self._virtual += each

    def _close(self) -> None:
        quiet_until = self._now - self._busy
        if quiet_until > self._window:
            self._emit(self._state, self._window, quiet_until)
        since = quiet_until
        shares = iter([*self._ended, *self._open_shares()])
        while part := tuple(islice(shares, MAX_SHARES)):
            until = since + sum(share.ns for share in part)
            self._emit(LeaseState.BUSY, since, until, part)
            since = until
        self._ended = []
        self._window, self._busy = self._now, 0

    def _open_shares(self) -> Iterator[CallShare]:
        for call, running in self._running.items():
            extra = 1 if self._carry else 0
            self._carry -= extra
            ns = self._virtual - running.since + extra
            running.since = self._virtual
            running.billed += ns
            if ns:
                yield CallShare(call, running.tenant, ns, key=running.key, tags=running.tags, shadow=running.shadow)

    def _emit(self, state: LeaseState, t0: int, t1: int, shares: tuple[CallShare, ...] = ()) -> None:
        self._metered += t1 - t0
        lease, owner = self.lease, self._owner
        self._closed.append(
            UsageEvent(
                id=f"{lease.instance}.{lease.slice}.{next(self._numbers)}",
                node=lease.node,
                device=lease.device,
                slice=lease.slice,
                ppm=lease.ppm,
                price=lease.price,
                state=state,
                t0=t0,
                t1=t1,
                ended_at=(self.wall_offset_ns + t1) / NS_PER_S,
                wall_ns=self.wall_offset_ns + t1,
                tenant=owner.tenant,
                app=owner.app,
                function=owner.function,
                version=owner.version,
                container=owner.container,
                shares=shares,
                purpose=owner.purpose,
                used=self._used,
                memory=owner.memory,
                region=lease.region,
                zone=lease.zone,
                purchase=lease.purchase,
                tags=owner.tags,
                core_ppm=owner.core_ppm,
                gib_ppm=owner.gib_ppm,
            )
        )


def _overlap(begin: int, end: int, since: int, until: int) -> int:
    """How much of what lies between `begin` and `end` lies between `since` and `until` too."""
    return max(0, min(end, until) - max(begin, since))
