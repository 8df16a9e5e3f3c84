"""Writes the record of an app's rollouts as the platform's duties do, so that a test decides what is split."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from pilotlight_core.bus import connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.rollouts.rollout_moves import started, with_share
from pilotlight_core.model.rollouts.rollout_record import (
    SALT_BYTES,
    Rollout,
    RolloutRecord,
    RolloutState,
    RolloutTerms,
    Sticky,
)
from tests.system.support.platform import Platform


@dataclass(kw_only=True)
class RolloutWriter:
    """Of one app, of the tenant whose key the platform has."""

    platform: Platform
    app: str
    tenant: str = "default"

    def change(self, change: Callable[[RolloutRecord | None], RolloutRecord]) -> RolloutRecord:
        async def write() -> RolloutRecord:
            async with connect(self.platform.nats_url, name="test", makes_streams=False) as bus, Registry(bus) as known:
                written = await known.change_rollout(self.tenant, self.app, change)
                assert written is not None
                return written

        return asyncio.run(write())

    def begin(self, canary: dict[str, str], share: int, sticky: Sticky) -> Rollout:
        """A rollout of versions that are registered, on its ramp."""
        shown = self.platform.http.get(f"/v1/apps/{self.app}").json()
        control = {one["name"]: one["version_id"] for one in shown["functions"] if one["name"] in canary}
        rollout = Rollout(
            id=f"rol_{secrets.randbelow(10**20):020}", number=0, control=control, canary=canary,
            terms=RolloutTerms(sticky=sticky, twin=False), salt=secrets.token_bytes(SALT_BYTES), since=time.time(),
            started_at=time.time(), by="test",
        )  # fmt: skip

        def change(record: RolloutRecord | None) -> RolloutRecord:
            return self._ramp(started(record, self.tenant, self.app, rollout), share)

        written = self.change(change).rollout
        assert written is not None
        return written

    def raise_share(self, share: int) -> RolloutRecord:
        def change(record: RolloutRecord | None) -> RolloutRecord:
            assert record is not None
            return self._ramp(record, share)

        return self.change(change)

    @staticmethod
    def _ramp(record: RolloutRecord, share: int) -> RolloutRecord:
        return with_share(record, share=share, twin_share=0, at=time.time(), step=0, state=RolloutState.RAMP)
