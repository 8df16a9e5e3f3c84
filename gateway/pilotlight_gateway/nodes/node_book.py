"""Changes of nodes' records: a node joins, renews its identity, or is cordoned, drained, opened or revoked."""

from __future__ import annotations

from msgspec.structs import replace

from pilotlight_core.bus.nkeys import NkeyKind, is_public_key
from pilotlight_core.model.api.node_api import JoinRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, QuotaExceeded
from pilotlight_core.model.records.nodes import LIFE_S, JoinTokenRecord, NodeRecord, NodeState
from pilotlight_gateway.nodes.join_tokens import parse_join_secret, use_join_token
from pilotlight_gateway.tenancy.registry_port import NodeRegistry

NODES_AT_MOST = 10_000
"""On record."""


async def join_node(registry: NodeRegistry, asked: JoinRequest, at: float, *, is_up: bool) -> NodeRecord:
    """Give a node an identity, for a token that is used up by this. `is_up`: a node of this name reports now.

    Raises:
        Unauthenticated: the token is not valid. BadInput: the key is none. Conflict: the name is taken.
        QuotaExceeded: there are too many nodes.
    """
    parse_join_secret(asked.token)  # a stranger hears nothing else
    if not is_public_key(asked.key, NkeyKind.USER):
        raise BadInput("key: expected the public key of a user, as 'pilotlight node join' makes it.", field="key")
    record = registry.node_nowait(asked.node)
    if record is None and sum(1 for _ in registry.nodes()) >= NODES_AT_MOST:
        raise QuotaExceeded(f"The platform has {NODES_AT_MOST} nodes on record, which is the most.")
    token = await use_join_token(registry, asked.token, asked.node, at)

    def joined(present: NodeRecord | None) -> NodeRecord:
        return joined_record(present, asked, token, at, is_up=is_up)

    made = await registry.change_node(asked.node, joined)
    assert made is not None  # noqa: S101 - `joined` removes none
    return made


def joined_record(
    present: NodeRecord | None, asked: JoinRequest, token: JoinTokenRecord, at: float, *, is_up: bool
) -> NodeRecord:
    """The record of a node that joins by this token, in the place of the present one.

    Raises:
        Conflict: another node has the name, and the token was not made for that one to join anew.
    """
    if token.node != asked.node:
        if present is not None and present.joined and not present.why_out(at):
            raise Conflict(
                f"There is a node {asked.node}. If this host is to take its place, make a token for it, "
                f"'pilotlight node token --node {asked.node}', or revoke it first; else choose another --node."
            )
        if is_up and (present is None or not present.joined):
            raise Conflict(f"A node {asked.node} is up, with a user of its own on the bus: choose another --node.")
    state = present.state if present is not None else NodeState.OPEN
    return NodeRecord(
        node=asked.node, labels=token.labels, keys=(asked.key,), joined_at=at, expires_at=at + LIFE_S, state=state
    )


async def renew_node(registry: NodeRegistry, node: str, key: str, at: float) -> NodeRecord:
    """Let a node's identity hold for longer.

    Raises:
        BadInput: the key is none. Conflict: it does not hold any more, or never did.
    """
    if not is_public_key(key, NkeyKind.USER):
        raise BadInput("key: expected the public key of a user.", field="key")

    def renewed(present: NodeRecord | None) -> NodeRecord:
        if present is None or (why := present.why_out(at)):
            raise Conflict(f"The identity of {node} is not renewed: {why if present else 'it has not joined'}.")
        return present.renewed(key, at)

    made = await registry.change_node(node, renewed)
    assert made is not None  # noqa: S101 - `renewed` removes none
    return made


async def set_node_state(registry: NodeRegistry, node: str, state: NodeState, *, is_known: bool) -> NodeRecord:
    """Cordon, drain or open a node. `is_known`: there was a report of it, on record or not.

    Raises:
        NotFound: there is no such node.
    """

    def changed(present: NodeRecord | None) -> NodeRecord:
        if present is None and not is_known:
            raise NotFound(f"There is no node {node}.")
        return replace(present or NodeRecord(node=node), state=state)

    made = await registry.change_node(node, changed)
    assert made is not None  # noqa: S101 - `changed` removes none
    return made


async def revoke_node(registry: NodeRegistry, node: str, at: float) -> NodeRecord:
    """End a node's identity for good; it may join anew by another token.

    Raises:
        NotFound: there is no such node. Conflict: it has a user in the bus's configuration.
    """

    def revoked(present: NodeRecord | None) -> NodeRecord:
        if present is None:
            raise NotFound(f"There is no node {node} that has joined by a token.")
        if not present.joined:
            raise Conflict(f"{node} has a user of its own on the bus: take that out of the servers' configuration.")
        return present if present.revoked_at else replace(present, revoked_at=at, keys=())

    made = await registry.change_node(node, revoked)
    assert made is not None  # noqa: S101 - `revoked` removes none
    return made
