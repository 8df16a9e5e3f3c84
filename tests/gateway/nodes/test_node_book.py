"""Who may join under a name, and what operators' words do to a node's record."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.model.api.node_api import JoinRequest, JoinTokenRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, Unauthenticated
from pilotlight_core.model.records.nodes import LIFE_S, NodeRecord, NodeState
from pilotlight_gateway.nodes.join_tokens import create_join_token
from pilotlight_gateway.nodes.node_book import join_node, renew_node, revoke_node, set_node_state
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry

AT = 1_000.0
KEYS = [Nkey.generate(NkeyKind.USER).public for _ in range(3)]


async def join(
    registry: MemoryRegistry, node: str = "n1", key: str = KEYS[0], *, of: str = "", at: float = AT, is_up: bool = False
) -> NodeRecord:
    """`of`: the node that the token is for."""
    made = await create_join_token(registry, JoinTokenRequest(node=of), at, region="eu", zone="eu-1")
    return await join_node(registry, JoinRequest(token=made.token, node=node, key=key), at, is_up=is_up)


async def test_a_node_joins(registry: MemoryRegistry) -> None:
    """With its key, for as long as an identity lasts."""
    record = await join(registry)
    assert (record.keys, record.expires_at, record.state) == ((KEYS[0],), AT + LIFE_S, NodeState.OPEN)
    assert registry.node_nowait("n1") == record
    assert record.why_out(AT + 1) == ""


async def test_a_name_is_one_nodes(registry: MemoryRegistry) -> None:
    """Unless the token was made for this name, or the one before is out: revoked, or expired."""
    await join(registry)
    with pytest.raises(Conflict, match="There is a node n1"):
        await join(registry, key=KEYS[1])
    assert (await join(registry, key=KEYS[1], of="n1")).keys == (KEYS[1],)
    await revoke_node(registry, "n1", AT)
    assert (await join(registry, key=KEYS[2])).keys == (KEYS[2],)
    await join(registry, at=AT + LIFE_S)


async def test_a_node_with_a_user_of_its_own_keeps_its_name(registry: MemoryRegistry) -> None:
    """While it is up; its state stays with the name."""
    await set_node_state(registry, "n1", NodeState.CORDONED, is_known=True)
    with pytest.raises(Conflict, match="is up"):
        await join(registry, is_up=True)
    assert (await join(registry)).state is NodeState.CORDONED


async def test_what_is_no_key_costs_no_token(registry: MemoryRegistry) -> None:
    """An account's would be somebody else's right."""
    made = await create_join_token(registry, JoinTokenRequest(), AT, region="eu", zone="eu-1")
    for key in ("U", Nkey.generate(NkeyKind.ACCOUNT).public):
        with pytest.raises(BadInput):
            await join_node(registry, JoinRequest(token=made.token, node="n1", key=key), AT, is_up=False)
    await join_node(registry, JoinRequest(token=made.token, node="n1", key=KEYS[0]), AT, is_up=False)
    with pytest.raises(Unauthenticated):
        await join_node(registry, JoinRequest(token=made.token, node="n2", key=KEYS[0]), AT, is_up=False)


async def test_a_renewal_keeps_the_key_before(registry: MemoryRegistry) -> None:
    """And no older one; the same again changes nothing but the time."""
    await join(registry)
    assert (await renew_node(registry, "n1", KEYS[1], AT + 10)).keys == (KEYS[1], KEYS[0])
    again = await renew_node(registry, "n1", KEYS[1], AT + 20)
    assert (again.keys, again.expires_at) == ((KEYS[1], KEYS[0]), AT + 20 + LIFE_S)
    assert (await renew_node(registry, "n1", KEYS[2], AT + 30)).keys == (KEYS[2], KEYS[1])


async def test_who_is_out_renews_nothing(registry: MemoryRegistry) -> None:
    """Revoked, expired, or never in."""
    await join(registry)
    await join(registry, "n2")
    await revoke_node(registry, "n2", AT)
    for node, at in (("n1", AT + LIFE_S), ("n2", AT), ("n3", AT)):
        with pytest.raises(Conflict):
            await renew_node(registry, node, KEYS[1], at)
    with pytest.raises(BadInput):
        await renew_node(registry, "n1", "no key", AT)


async def test_a_revoked_node_has_no_key(registry: MemoryRegistry) -> None:
    """It is revoked once; who has not joined cannot be."""
    await join(registry)
    first = await revoke_node(registry, "n1", AT + 1)
    assert (first.revoked_at, first.keys) == (AT + 1, ())
    assert await revoke_node(registry, "n1", AT + 2) == first
    with pytest.raises(NotFound):
        await revoke_node(registry, "n2", AT)
    await set_node_state(registry, "n2", NodeState.CORDONED, is_known=True)
    with pytest.raises(Conflict):
        await revoke_node(registry, "n2", AT)


async def test_any_node_can_be_cordoned(registry: MemoryRegistry) -> None:
    """Also one that has not joined, once it has reported; its identity stays as it is."""
    joined = await join(registry)
    assert await set_node_state(registry, "n1", NodeState.DRAINING, is_known=False) == replace(
        joined, state=NodeState.DRAINING
    )
    with pytest.raises(NotFound):
        await set_node_state(registry, "n2", NodeState.CORDONED, is_known=False)
    assert await set_node_state(registry, "n2", NodeState.CORDONED, is_known=True) == NodeRecord(
        node="n2", state=NodeState.CORDONED
    )
