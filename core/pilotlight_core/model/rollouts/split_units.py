"""What of a call stays on one side of a rollout, and who takes part in one. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pilotlight_core.model.rollouts.rollout_record import Cohort, Sticky

HASHED = 16
"""Characters of a unit that are kept beside its calls: they tell units apart, and name nobody."""


class SplitAsker(NamedTuple):
    """What a call says of who asks for it."""

    tenant: str
    """Who calls."""
    key: str
    """The id of the API key."""
    call_id: str
    idempotency_key: str = ""
    sticky: str = ""
    """What `Pilotlight-Sticky` says."""
    user: str = ""
    headers: Mapping[bytes, bytes] = {}  # nobody changes it
    """Those that cohorts go by, by their lower-case names."""


class SaysWho(Protocol):
    """The head of a request, as far as splits go by it; the fields are `SplitAsker`'s."""

    @property
    def key(self) -> bytes: ...
    @property
    def sticky(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def shown(self) -> Mapping[bytes, bytes]: ...


def asker_of(tenant: str, key: str, call_id: str, head: SaysWho | None) -> SplitAsker:
    """Who asks for a call, by its request's head."""
    if head is None:
        return SplitAsker(tenant, key, call_id)
    return SplitAsker(tenant, key, call_id, head.key.decode("latin-1"), head.sticky, head.user, head.shown)


class SplitUnit(NamedTuple):
    """What is drawn."""

    text: str
    """That is hashed to a bucket."""
    is_keyed: bool
    """Whether it is what the rollout wants to be sticky; else each call is drawn by itself."""

    @property
    def hashed(self) -> str:
        """For what is told of the call; "": it was drawn by itself."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:HASHED] if self.is_keyed else ""


def unit_of(sticky: Sticky, asker: SplitAsker) -> SplitUnit:
    """The unit of a call. One that does not say what its rollout asks for is drawn by itself.

    Parts are told apart by what they begin with: no user can be named like a tenant.
    """
    said = {
        Sticky.CALL: "",
        Sticky.TENANT: asker.tenant,
        Sticky.USER: asker.user or asker.sticky,
        Sticky.KEY: asker.key,
        Sticky.HEADER: asker.sticky,
    }[sticky]
    if said:
        # Users and headers are named by each tenant for itself.
        whose = "" if sticky is Sticky.TENANT else f"{asker.tenant}/"
        return SplitUnit(f"{sticky}:{whose}{said}", is_keyed=True)
    if asker.idempotency_key:
        return SplitUnit(f"once:{asker.tenant}/{asker.idempotency_key}", is_keyed=False)
    return SplitUnit(f"call:{asker.call_id}", is_keyed=False)


def is_in_cohort(cohort: Cohort, asker: SplitAsker) -> bool:
    """Whether a call takes part in a rollout that is for some callers only."""
    if cohort.tenants and asker.tenant not in cohort.tenants:
        return False
    shown = asker.headers
    return all(shown.get(name.encode()) == value.encode() for name, value in cohort.headers.items())
