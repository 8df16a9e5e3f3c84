"""The ring of kept calls: the newest of each tenant, so that who fails most displaces its own."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from heapq import merge

from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.sampled_call import SampledRecord
from pilotlight_gateway.traces.open_sheet import OpenSheet

MOST_KEPT = 2_048

AnyKept = KeptCall | SampledRecord


class TenantKept:
    """Those of one tenant, each in the order in which they ended."""

    def __init__(self) -> None:
        self.whole: OrderedDict[str, KeptCall] = OrderedDict()
        self.sheets: deque[OpenSheet] = deque()
        self.size = 0

    def drop_one(self) -> None:
        """Drop the oldest."""
        self.size -= 1
        sheet = self.sheets[0] if self.sheets else None
        if sheet is None or (self.whole and _ended_ns(next(iter(self.whole.values()))) < _ended_ns(sheet.oldest())):
            self.whole.popitem(last=False)
            return
        sheet.drop_one()
        if not sheet.left:
            self.sheets.popleft()

    def find(self, call_id: str) -> AnyKept | None:
        """The call with this id."""
        if (known := self.whole.get(call_id)) is not None:
            return known
        name = call_id.encode(errors="replace")
        for sheet in reversed(self.sheets):
            for call in sheet.newest_first() if sheet.may_have(name) else ():
                if call.times.id == call_id:
                    return call
        return None

    def newest_first(self) -> Iterator[AnyKept]:
        """All of them, by when they ended."""
        return merge(reversed(self.whole.values()), self._sampled(), key=_ended_ns, reverse=True)

    def _sampled(self) -> Iterator[AnyKept]:
        for sheet in reversed(self.sheets):
            yield from sheet.newest_first()


class KeptCalls:
    """At most `most` calls, by tenant and id. A full ring drops the oldest of a tenant that has more than its share."""

    def __init__(self, most: int = MOST_KEPT, *, gateway: str = "") -> None:
        """`gateway`: the one that keeps them."""
        self._most = most
        self._gateway = gateway
        self._of: dict[str, TenantKept] = {}
        self._size = self._sheets = 0
        self.dropped = 0
        """That made room for others."""

    def __len__(self) -> int:
        return self._size

    def add(self, call: KeptCall) -> None:
        """Keep a call, in place of one with its id."""
        own = self._own(call.tenant)
        if own.whole.pop(call.id, None) is None:
            self._size += 1
            own.size += 1
        own.whole[call.id] = call
        if self._size > self._most:
            self._drop_one(call.tenant, own)

    def sheet_of(self, tenant: str) -> OpenSheet:
        """What a tenant's next sampled call is written to; `count` follows each."""
        own = self._own(tenant)
        if own.sheets:
            last = own.sheets[-1]
            if not last.full:
                return last
        self._sheets += 1
        made = OpenSheet(tenant, self._sheets)
        own.sheets.append(made)
        return made

    def count(self, tenant: str) -> None:
        """One was written to the sheet of a tenant."""
        own = self._of[tenant]
        own.size += 1
        self._size += 1
        if self._size > self._most:
            self._drop_one(tenant, own)

    def find(self, tenant: str, call_id: str) -> KeptCall | None:
        """A tenant's call."""
        own = self._of.get(tenant)
        found = None if own is None else own.find(call_id)
        return None if found is None else self._whole(found)

    def find_whole(self, tenant: str, call_id: str) -> KeptCall | None:
        """The same where it is no ordinary one, which costs no search."""
        own = self._of.get(tenant)
        return None if own is None else own.whole.get(call_id)

    def of_tenant(self, tenant: str, function: str = "", kept: str = "") -> Iterator[KeptCall]:
        """A tenant's calls, the newest first: those of one function, and kept for one reason, where these are named."""
        own = self._of.get(tenant)
        seen = set[str]()
        for call in () if own is None else own.newest_first():
            if call.id in seen:
                continue
            seen.add(call.id)
            if function in ("", call.function) and kept in ("", call.kept.value):
                yield self._whole(call)

    def forget(self, tenant: str) -> None:
        """Keep nothing of a tenant any more."""
        own = self._of.pop(tenant, None)
        self._size -= 0 if own is None else own.size

    def _own(self, tenant: str) -> TenantKept:
        own = self._of.get(tenant)
        if own is None:
            own = self._of[tenant] = TenantKept()
        return own

    def _whole(self, call: AnyKept) -> KeptCall:
        return call.whole(self._gateway) if isinstance(call, SampledRecord) else call

    def _drop_one(self, adding: str, of_adding: TenantKept) -> None:
        # Whoever floods has more than its share, which is found at once; the search is for the rest.
        whose, own = adding, of_adding
        if own.size * len(self._of) <= self._size:
            whose = max(self._of, key=lambda tenant: self._of[tenant].size)
            own = self._of[whose]
        own.drop_one()
        if not own.size:
            del self._of[whose]
        self._size -= 1
        self.dropped += 1


def _ended_ns(call: AnyKept) -> float:
    if isinstance(call, SampledRecord):
        return call.times.arrived_ns + call.times.total_ms * 1e6
    return call.arrived_ns + call.total_ms * 1e6
