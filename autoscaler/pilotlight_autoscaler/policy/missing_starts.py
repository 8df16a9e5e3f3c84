"""What several tenants wait for, to be dealt out in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pilotlight_placement.fleet.tenant_holdings import HeldResources

AskT = TypeVar("AskT")


@dataclass(frozen=True, kw_only=True)
class MissingStarts(Generic[AskT]):
    """Containers of one kind that a tenant should have more, and what each of them would take."""

    ask: AskT
    tenant: str
    need: HeldResources
    count: int
