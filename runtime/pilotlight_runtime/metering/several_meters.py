"""One meter in place of several, for a container that has several whole devices."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_runtime.metering.meter import NOTHING, SliceMeter
from pilotlight_runtime.metering.metered_slice import OPERATOR, SliceOwner


class SeveralMeters:
    """The meters of devices that one container has whole: every event is one on all of them."""

    def __init__(self, meters: Sequence[SliceMeter]) -> None:
        self._meters = tuple(meters)

    @property
    def state(self) -> LeaseState:
        return self._meters[0].state

    @property
    def used(self) -> bool:
        return self._meters[0].used

    @property
    def price(self) -> str:
        return self._meters[0].price

    def transition(self, state: LeaseState, at_ns: int, owner: SliceOwner = OPERATOR) -> None:
        for meter, each in zip(self._meters, self._owners(owner), strict=True):
            meter.transition(state, at_ns, each)

    def keep(self, owner: SliceOwner, at_ns: int) -> None:
        for meter, each in zip(self._meters, self._owners(owner), strict=True):
            meter.keep(each, at_ns)

    def _owners(self, owner: SliceOwner) -> list[SliceOwner]:
        """The owner of each: the host is paid for once."""
        beside = msgspec.structs.replace(owner, core_ppm=0, gib_ppm=0)
        return [owner, *(beside for _ in self._meters[1:])]

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
        for meter in self._meters:
            meter.call_started(
                call_id, tenant, at_ns, key=key, tags=tags, cold_us=cold_us, shadow=shadow, parent=parent,
                resumed=resumed,
            )  # fmt: skip

    def keep_work(self, call_ids: Sequence[str], at_ns: int) -> None:
        for meter in self._meters:
            meter.keep_work(call_ids, at_ns)

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
        """End a call on all of them; returns what it used of them together."""
        spent = [
            meter.call_ended(
                call_id, outcome, at_ns, batch_size, fault=fault, units=units, moved=moved, is_lost=is_lost
            )
            for meter in self._meters
        ]
        return msgspec.structs.replace(spent[0], ppm=sum(each.ppm for each in spent))
