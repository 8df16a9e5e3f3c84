"""The ring of kept calls: the newest of each tenant, so that who fails most displaces its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.sampled_call import SampledRecord

MOST_KEPT = 2_048

AnyKept = KeptCall | SampledRecord


class KeptCalls:
    """At most `most` calls, by tenant and id. A full ring drops the oldest of a tenant that has more than its share."""

    def __init__(self, most: int = MOST_KEPT, *, gateway: str = "") -> None:
        """`gateway`: the one that keeps them."""
        self._most = most
        self._gateway = gateway
        self._of: dict[str, OrderedDict[str, AnyKept]] = {}
        self._size = 0
        self.dropped = 0
        """That made room for others."""

    def __len__(self) -> int:
        return self._size

    def add(self, call: AnyKept) -> None:
        """Keep a call, in place of one with its id."""
        tenant, name = call.tenant, call.id
        own = self._of.get(tenant)
        if own is None:
            own = self._of[tenant] = OrderedDict()
        if own.pop(name, None) is None:
            self._size += 1
        own[name] = call
        if self._size > self._most:
            self._drop_one(tenant)

    def find(self, tenant: str, call_id: str) -> KeptCall | None:
        """A tenant's call."""
        own = self._of.get(tenant)
        found = None if own is None else own.get(call_id)
        return None if found is None else self._whole(found)

    def of_tenant(self, tenant: str, function: str = "", kept: str = "") -> Iterator[KeptCall]:
        """A tenant's calls, the newest first: those of one function, and kept for one reason, where these are named."""
        own = self._of.get(tenant)
        for call in () if own is None else reversed(own.values()):
            if function in ("", call.function) and kept in ("", call.kept.value):
                yield self._whole(call)

    def forget(self, tenant: str) -> None:
        """Keep nothing of a tenant any more."""
        self._size -= len(self._of.pop(tenant, ()))

    def _whole(self, call: AnyKept) -> KeptCall:
        return call.whole(self._gateway) if isinstance(call, SampledRecord) else call

    def _drop_one(self, adding: str) -> None:
        # Whoever floods has more than its share, which is found at once; the search is for the rest.
        whose = adding
        if len(self._of[adding]) * len(self._of) <= self._size:
            whose = max(self._of, key=lambda tenant: len(self._of[tenant]))
        own = self._of[whose]
        own.popitem(last=False)
        if not own:
            del self._of[whose]
        self._size -= 1
        self.dropped += 1
