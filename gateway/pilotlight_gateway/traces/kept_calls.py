"""The ring of kept calls: the newest of each tenant, so that who fails most displaces its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from pilotlight_core.model.tracing.kept_call import KeptCall

MOST_KEPT = 2_048


class KeptCalls:
    """At most `most` calls, by tenant and id. A full ring drops the oldest of a tenant that has more than its share."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._of: dict[str, OrderedDict[str, KeptCall]] = {}
        self._size = 0
        self.dropped = 0
        """That made room for others."""

    def __len__(self) -> int:
        return self._size

    def add(self, call: KeptCall) -> None:
        """Keep a call, in place of one with its id."""
        own = self._of.get(call.tenant)
        if own is None:
            own = self._of[call.tenant] = OrderedDict()
        if own.pop(call.id, None) is None:
            self._size += 1
        own[call.id] = call
        if self._size > self._most:
            self._drop_one(call.tenant)

    def find(self, tenant: str, call_id: str) -> KeptCall | None:
        """A tenant's call."""
        own = self._of.get(tenant)
        return None if own is None else own.get(call_id)

    def of_tenant(self, tenant: str) -> Iterator[KeptCall]:
        """A tenant's calls, the newest first."""
        yield from reversed(self._of.get(tenant, OrderedDict()).values())

    def forget(self, tenant: str) -> None:
        """Keep nothing of a tenant any more."""
        self._size -= len(self._of.pop(tenant, ()))

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
