"""Whose connections are closed, and when. That a server closes them: `test_node_admission`."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from pilotlight_core.bus import BusError
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord
from pilotlight_gateway.nodes import node_eviction
from pilotlight_gateway.nodes.node_eviction import AGAIN_S, LATELY_S, NodeEviction, ends_connections
from pilotlight_gateway.nodes.open_connections import ASKED_S
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry

LABELS = NodeLabels(region="r", zone="z")
IN = NodeRecord(node="n1", labels=LABELS, joined_at=1.0, expires_at=20.0)
ANEW = NodeRecord(node="n1", labels=LABELS, joined_at=5.0, expires_at=20.0)
OUT = NodeRecord(node="n1", labels=LABELS, joined_at=1.0, expires_at=20.0, revoked_at=9.0)
STATIC = NodeRecord(node="n1")


@pytest.mark.parametrize(
    ("before", "now", "ends"),
    [
        (None, IN, False), (IN, IN, False), (IN, OUT, True), (None, OUT, True), (IN, ANEW, True), (OUT, ANEW, True),
        (IN, None, True), (STATIC, None, False), (None, STATIC, False), (STATIC, IN, False),
    ],
)  # fmt: skip
def test_which_changes_end_connections(before: NodeRecord | None, now: NodeRecord | None, ends: bool) -> None:
    """An end, or another host's beginning."""
    assert ends_connections(before, now, 10.0) is ends


def test_an_expired_one_is_out() -> None:
    """Whatever else has changed."""
    assert ends_connections(IN, IN, 20.0)


def test_all_closings_are_over_within_five_seconds() -> None:
    """With what servers are given to answer each."""
    assert sum(AGAIN_S) + len(AGAIN_S) * ASKED_S + 0.5 < 5.0
    assert node_eviction.AGAIN_S[0] == 0.0


class Closer:
    """Notes whom it was asked to close; the first time it fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.rung = asyncio.Event()

    async def close(self, user: str) -> int:
        self.asked.append(user)
        self.rung.set()
        if len(self.asked) == 1:
            raise BusError("away")
        return 1


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_revoked_node_is_closed_again_after_a_failure(registry: MemoryRegistry) -> None:
    """And one that was out before the gateway began, since its last one may have died over it; not one of long ago."""
    at = 10.0 * LATELY_S
    registry.node_records["n0"] = NodeRecord(node="n0", labels=LABELS, revoked_at=at - 1.0)
    registry.node_records["old"] = NodeRecord(node="old", labels=LABELS, revoked_at=1.0)
    closer, present = Closer(), replace(IN, expires_at=at + 1.0)
    async with NodeEviction(registry, closer, lambda: at).running():
        await registry.change_node("n1", lambda _: present)
        await registry.change_node("n1", lambda _: replace(present, revoked_at=at))
        while closer.asked.count("agent-n1") + closer.asked.count("agent-n0") < 3:
            async with asyncio.timeout(30):
                await closer.rung.wait()
            closer.rung.clear()
    assert {"agent-n0", "agent-n1"} == set(closer.asked)
