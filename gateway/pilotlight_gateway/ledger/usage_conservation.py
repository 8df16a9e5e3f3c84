"""Checks that no time of a device is lost or sold twice.

Over any window, tenants' usage plus the operator's (free slices, blanks, parts outside all slices, gaps) equals the
window times the device, in nanosecond-ppm. Recorded usage is summed from the lines. Unrecorded time comes from a sweep
over each slice, so that overlapping lines show as an excess and do not cancel a gap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A row of `lease_line`, cut to a window; nanoseconds of the node's boot clock."""

    slice: str
    ppm: int
    tenant: str
    t0: int
    t1: int


@dataclass(frozen=True, kw_only=True)
class DeviceAccount:
    """Where a device's capacity over a window went, in nanosecond-ppm."""

    window: int
    """Length times capacity."""
    tenants: dict[str, int]
    operator: int
    """Lines without a tenant."""
    unrecorded: int
    """Covered by no line: gaps, and parts outside all slices. The operator pays it too."""

    @property
    def excess(self) -> int:
        """0 if the account is exact; otherwise what was counted twice or beyond the device."""
        return sum(self.tenants.values()) + self.operator + self.unrecorded - self.window


def account(lines: Iterable[Interval], t0: int, t1: int, capacity: int = WHOLE_DEVICE) -> DeviceAccount:
    """The account of one device over [t0, t1) nanoseconds of its node's boot clock."""
    tenants: dict[str, int] = defaultdict(int)
    operator = 0
    by_slice: dict[str, list[Interval]] = defaultdict(list)
    for line in _clipped(lines, t0, t1):
        by_slice[line.slice].append(line)
        if line.tenant:
            tenants[line.tenant] += (line.t1 - line.t0) * line.ppm
        else:
            operator += (line.t1 - line.t0) * line.ppm
    covered = sum(_covered(lines) for lines in by_slice.values())
    return DeviceAccount(
        window=(t1 - t0) * capacity,
        tenants=dict(tenants),
        operator=operator,
        unrecorded=max(0, (t1 - t0) * capacity - covered),
    )


def device_account(
    ledger: Ledger, node: str, device: str, t0: int, t1: int, capacity: int = WHOLE_DEVICE
) -> DeviceAccount:
    """`account` of the ledger's lines. Blocks: call it in a thread."""
    own = sa.select(lease_line.c.slice, lease_line.c.ppm, lease_line.c.tenant, lease_line.c.t0, lease_line.c.t1).where(
        lease_line.c.node == node, lease_line.c.device == device, lease_line.c.t0 < t1, lease_line.c.t1 > t0
    )
    return account((_interval(row) for row in ledger.read(own)), t0, t1, capacity)


def _interval(row: dict[str, Any]) -> Interval:
    return Interval(**row)


def _clipped(lines: Iterable[Interval], t0: int, t1: int) -> Iterable[Interval]:
    for line in lines:
        start, end = max(line.t0, t0), min(line.t1, t1)
        if start < end:
            yield Interval(slice=line.slice, ppm=line.ppm, tenant=line.tenant, t0=start, t1=end)


def _covered(lines: list[Interval]) -> int:
    """Nanosecond-ppm of the union of a slice's intervals."""
    total, reached = 0, None
    for line in sorted(lines, key=lambda line: line.t0):
        start = line.t0 if reached is None else max(line.t0, reached)
        if line.t1 > start:
            total += (line.t1 - start) * line.ppm
            reached = line.t1
    return total
