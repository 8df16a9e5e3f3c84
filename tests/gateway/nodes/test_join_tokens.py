"""Tokens by which nodes join: one use, a time, and no more of them than there may be."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.node_api import JoinTokenRequest
from pilotlight_core.model.errors import BadInput, QuotaExceeded, Unauthenticated
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.join_secrets import new_join_secret
from pilotlight_core.model.records.nodes import NodeLabels
from pilotlight_gateway.nodes.join_tokens import (
    OPEN_AT_MOST,
    create_join_token,
    parse_join_secret,
    use_join_token,
)
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry

AT = 1_000.0


async def made(registry: MemoryRegistry, **more: object) -> str:
    asked = JoinTokenRequest(**more)  # type: ignore[arg-type]
    return (await create_join_token(registry, asked, AT, region="eu", zone="eu-1")).token


async def test_a_token_is_used_once(registry: MemoryRegistry) -> None:
    """What it gives is what its maker said; its secret is nowhere on record."""
    token = await made(registry, pool="h100", purchase=Purchase.SPOT, zone="eu-2")
    (record,) = registry.join_tokens()
    assert parse_join_secret(token).secret not in str(record)

    used = await use_join_token(registry, token, "n1", AT + 1)
    assert used.labels == NodeLabels(region="eu", zone="eu-2", pool="h100", spot=True)
    with pytest.raises(Unauthenticated):
        await use_join_token(registry, token, "n1", AT + 1)


async def test_a_token_expires(registry: MemoryRegistry) -> None:
    """At its second, and the next one that is made takes it off the record."""
    token = await made(registry, expires_in_s=60.0)
    with pytest.raises(Unauthenticated):
        await use_join_token(registry, token, "n1", AT + 60)
    assert len(list(registry.join_tokens())) == 1
    await create_join_token(registry, JoinTokenRequest(), AT + 60, region="eu", zone="eu-1")
    assert len(list(registry.join_tokens())) == 1


async def test_one_for_a_node_is_no_other_ones(registry: MemoryRegistry) -> None:
    """And whoever tries has not used it up."""
    token = await made(registry, node="n1")
    with pytest.raises(Unauthenticated, match="n1"):
        await use_join_token(registry, token, "n2", AT)
    assert (await use_join_token(registry, token, "n1", AT)).labels.zone == "eu-1"


async def test_there_is_a_bound(registry: MemoryRegistry) -> None:
    """Of those that nobody has used."""
    tokens = [await made(registry) for _ in range(OPEN_AT_MOST)]
    with pytest.raises(QuotaExceeded):
        await made(registry)
    await use_join_token(registry, tokens[0], "n1", AT)
    await made(registry)


@pytest.mark.parametrize("label", [{"node": "a.b"}, {"pool": "a b"}])
async def test_labels_are_names(registry: MemoryRegistry, label: dict[str, str]) -> None:
    """Else they could not be in a subject."""
    with pytest.raises(BadInput):
        await made(registry, **label)


@pytest.mark.parametrize("text", ["", "pl_join_", "pl_live_00000000_x", f"pl_join_{8 * '0'}_{39 * 'a'}"])
async def test_what_is_no_token_is_refused(registry: MemoryRegistry, text: str) -> None:
    """Before anything is looked up."""
    with pytest.raises(Unauthenticated):
        await use_join_token(registry, text, "n1", AT)


async def test_another_secret_opens_nothing(registry: MemoryRegistry) -> None:
    """With the id of one that is there."""
    known = parse_join_secret(await made(registry))
    with pytest.raises(Unauthenticated):
        await use_join_token(registry, str(new_join_secret()._replace(id=known.id)), "n1", AT)
    assert len(list(registry.join_tokens())) == 1
