"""Evidence over a real bus: written under the revision that was read; what is to be folded comes in order."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import KeyConflict, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.wire import encode
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.judging.evidence import encode_evidence, fold, slow_limits_of, start
from pilotlight_gateway.rollouts.evidence_store import BusEvidence
from tests.gateway.rollouts.kept_rollout import compared, rollout, told


async def test_what_was_folded_is_read_back_to_the_bit(server_url: str) -> None:
    """Another release's bytes are none, and are replaced; who is late is refused."""
    tenant = f"t{token(8)}"
    async with connect(server_url, name="evidence") as bus:
        store, evidence = BusEvidence(bus, region="local"), start(rollout())
        assert await store.read(tenant, "shop") == (None, 0)
        revision = await store.write(tenant, "shop", evidence, 0)
        fold(evidence, 7, [compared(1, Arm.CANARY, failed=True)])
        later = await store.write(tenant, "shop", evidence, revision)
        kept = await store.read(tenant, "shop")
        assert kept.evidence is not None
        assert (encode_evidence(kept.evidence), kept.revision) == (encode_evidence(evidence), later)
        with pytest.raises(KeyConflict):
            await store.write(tenant, "shop", evidence, revision)
        await bus.kv(subjects.EVIDENCE_BUCKET).put(f"{tenant}.shop", b"\xc1")
        unread = await store.read(tenant, "shop")
        assert unread.evidence is None
        await store.write(tenant, "shop", evidence, unread.revision)


async def test_when_calls_are_slow_can_be_read_at_each_gateway(server_url: str) -> None:
    """What was written last; another release's bytes are nothing, and are replaced. The evidence is another value."""
    tenant = f"t{token(8)}"
    async with connect(server_url, name="evidence") as bus:
        store = BusEvidence(bus, region="local")
        assert await store.limits(tenant, "shop") is None
        first, later = (slow_limits_of(start(rollout(id=name))) for name in ("rol_1", "rol_2"))
        await store.write_limits(tenant, "shop", first)
        assert await store.limits(tenant, "shop") == first
        await bus.kv(subjects.EVIDENCE_BUCKET).put(f"{tenant}.shop.slow", b"\xc1")
        assert await store.limits(tenant, "shop") is None
        await store.write_limits(tenant, "shop", later)
        assert await store.limits(tenant, "shop") == later
        assert await store.read(tenant, "shop") == (None, 0)


async def test_an_apps_messages_come_page_by_page(server_url: str) -> None:
    """What cannot be read is passed over, and others' are not there."""
    tenant = f"t{token(8)}"
    async with connect(server_url, name="evidence") as bus:
        store = BusEvidence(bus, region="local")
        before = await store.last_place()
        for app, data in (
            ("shop", encode(told(compared(1, Arm.TWIN)))),
            ("other", encode(told(compared(2, Arm.TWIN)))),
            ("shop", b"nonsense"),
            ("shop", encode(told(compared(3, Arm.TWIN)))),
        ):
            await bus.jetstream.store(subjects.compared("local", tenant, app), data, message_id=token(), timeout=5.0)
        page = await store.page(tenant, "shop", before)
        assert [message.calls[0].call_id for _, message in page.messages] == ["call_1", "call_3"]
        assert (page.is_last, page.last) == (True, await store.last_place())
        assert (await store.page(tenant, "shop", page.last)).messages == []
