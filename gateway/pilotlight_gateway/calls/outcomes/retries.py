"""Retries: how often a call is tried again, by how the attempt before ended."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from pilotlight_core.model.spec import MAX_RETRY_PAUSE_S, FunctionSpec

MAX_PLACEMENTS = 10
"""Containers that may refuse a call before it fails."""
MAX_RERUNS = 2
"""Of a lost idempotent call: three starts in all."""
FIRST_BACKOFF_S = 0.1
"""Before retry n of a call that raised: 0.1 s x 2^n, at most MAX_RETRY_PAUSE_S."""


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often one call was refused, was lost and raised, so far."""

    refused: int = 0
    """Times that it never started."""
    lost: int = 0
    """Times that it was run again because it was lost with its container or node."""
    raised: int = 0
    """Times that it was run again because its code raised."""

    @property
    def may_be_placed(self) -> bool:
        """Whether a call that never started may go to another container."""
        return self.refused < MAX_PLACEMENTS

    @property
    def backoff_s(self) -> float:
        """The pause before a call whose code raised is run again."""
        return min(FIRST_BACKOFF_S * 2.0**self.raised, MAX_RETRY_PAUSE_S)

    def may_rerun(self, spec: FunctionSpec) -> bool:
        """Whether a call that was lost may be run again."""
        return spec.idempotent and self.lost < MAX_RERUNS

    def may_move(self, spec: FunctionSpec) -> bool:
        """Whether a resumable stream that was lost may go on elsewhere."""
        return spec.resumable is not UNSET and self.lost < spec.resumable.migrations

    def may_retry(self, spec: FunctionSpec, at: float, deadline_at: float) -> bool:
        """Whether a call whose code raised may be run again."""
        return self.raised < spec.retries and at + self.backoff_s < deadline_at

    def after_refusal(self) -> Retries:
        return msgspec.structs.replace(self, refused=self.refused + 1)

    def after_loss(self) -> Retries:
        return msgspec.structs.replace(self, lost=self.lost + 1)

    def after_raise(self) -> Retries:
        return msgspec.structs.replace(self, raised=self.raised + 1)


UNTRIED = Retries()
"""Of a call that has not been tried yet."""
