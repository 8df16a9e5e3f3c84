"""Tokens by which a node joins, once: `pl_join_<id: 8>_<secret: 30>`, in base 36 and base 62.

As with API keys only the digest of the secret is stored. A token is used up before its node gets an identity: of two
that come with it one wins, and what fails in between costs a new token.
"""

from __future__ import annotations

import hmac

from pilotlight_core.model.api.join_text import JOIN_TOKEN
from pilotlight_core.model.api.node_api import JoinTokenRequest, NewJoinToken
from pilotlight_core.model.errors import QuotaExceeded, Unauthenticated
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.join_secrets import JoinSecret, new_join_secret
from pilotlight_core.model.records.nodes import JoinTokenRecord, NodeLabels
from pilotlight_gateway.tenancy.registry_port import NodeRegistry

OPEN_AT_MOST = 100
REFUSED = "The token is not valid: it was used, has expired, or never was. An operator makes a new one, 'node token'."


def parse_join_secret(text: str) -> JoinSecret:
    """The parts of a token.

    Raises:
        Unauthenticated: it is none.
    """
    found = JOIN_TOKEN.fullmatch(text)
    if found is None:
        raise Unauthenticated(REFUSED)
    return JoinSecret(found[1], found[2])


async def create_join_token(
    registry: NodeRegistry, asked: JoinTokenRequest, at: float, *, region: str, zone: str
) -> NewJoinToken:
    """Make a token; `region` and `zone` are those of nodes that say no other.

    Raises:
        BadInput: a label is no name.
        QuotaExceeded: there are too many that nobody has used.
    """
    for name, text in (("node", asked.node), ("pool", asked.pool)):
        if text:
            check_name(text, name)
    known = list(registry.join_tokens())
    for old in known:
        if old.expires_at <= at:
            await registry.change_join_token(old.id, lambda _: None)
    if sum(one.expires_at > at for one in known) >= OPEN_AT_MOST:
        raise QuotaExceeded(f"There are {OPEN_AT_MOST} tokens that no node has used: wait until some have expired.")
    made = new_join_secret()
    labels = NodeLabels(region=region, zone=asked.zone or zone, pool=asked.pool, spot=asked.purchase is Purchase.SPOT)
    record = JoinTokenRecord(
        id=made.id, sha256=made.sha256, labels=labels, created_at=at, expires_at=at + asked.expires_in_s,
        node=asked.node,
    )  # fmt: skip
    await registry.change_join_token(made.id, lambda _: record)
    return NewJoinToken(
        id=made.id, token=str(made), expires_at=record.expires_at, region=region, zone=labels.zone, pool=labels.pool,
        purchase=labels.purchase, node=asked.node,
    )  # fmt: skip


async def use_join_token(registry: NodeRegistry, text: str, node: str, at: float) -> JoinTokenRecord:
    """Use a token up; what it gives.

    Raises:
        Unauthenticated: it is none that is valid for this node.
    """
    asked = parse_join_secret(text)
    used: list[JoinTokenRecord] = []

    def take(record: JoinTokenRecord | None) -> JoinTokenRecord | None:
        used.clear()
        if record is None or not hmac.compare_digest(record.sha256, asked.sha256) or record.expires_at <= at:
            raise Unauthenticated(REFUSED)
        if record.node not in ("", node):
            raise Unauthenticated(f"The token is for the node {record.node}, not for {node}.")
        used.append(record)
        return None

    await registry.change_join_token(asked.id, take)
    return used[0]
