"""The batches of one container: calls that gather for a batched method, and the batch of it that the guest has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.guest.frames import BatchResult
from pilotlight_runtime.held import HeldCall


@dataclass(kw_only=True, eq=False)
class Batch:
    """Calls that the guest is given at once."""

    number: int
    method: str
    items: list[HeldCall]
    rest: deque[HeldCall] = field(default_factory=deque)
    """Those that run after this one, each alone, since the batch had raised as a whole."""
    is_retry: bool = False

    @property
    def can_split(self) -> bool:
        """Whether its items may do better alone."""
        return len(self.items) > 1 and not self.is_retry
