"""Nodes: the list, tokens by which they join, and what operators say of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.node_api import (
    JoinedNode,
    JoinRequest,
    JoinTokenRequest,
    NewJoinToken,
    NodeInfo,
    NodeList,
)
from pilotlight_core.model.errors import BadInput, NotFound, Unavailable
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.records.nodes import NodeRecord, NodeState
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_body
from pilotlight_gateway.bodies.json_structs import read_json
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.http.protocol.api_operations import BODY, SMALL_BODY, Operation, json_answer, read_struct
from pilotlight_gateway.http.protocol.http_exchange import header
from pilotlight_gateway.http.protocol.request_bodies import read_body
from pilotlight_gateway.nodes.join_tokens import create_join_token
from pilotlight_gateway.nodes.node_book import join_node, revoke_node, set_node_state
from pilotlight_gateway.nodes.node_identities import JoiningTerms
from pilotlight_gateway.nodes.node_list import node_info, node_infos
from pilotlight_gateway.tenancy.registry_port import NodeRegistry

NOBODY = ""
"""Whose bodies those of nodes are that join: they have no key."""


@dataclass(frozen=True, kw_only=True)
class NodeServices:
    """The ports of these endpoints. `wall` is the clock, in unix seconds."""

    registry: NodeRegistry
    calls: CallPort
    budget: ByteBudget
    terms: JoiningTerms = field(default_factory=JoiningTerms)
    wall: Callable[[], float] = time.time


async def list_nodes(_: Request, services: NodeServices) -> Response:
    """`GET /v1/nodes`."""
    return json_answer(NodeList(nodes=node_infos(services.calls.nodes(), services.registry.nodes(), services.wall())))


async def show_node(request: Request, services: NodeServices) -> Response:
    """`GET /v1/nodes/{node}`."""
    node = _named(request)
    report, record = _report_of(services, node), await services.registry.node(node)
    if report is None and record is None:
        raise NotFound(f"There is no node {node}.")
    return json_answer(node_info(node, report, record, services.wall()))


async def create_token(request: Request, services: NodeServices) -> Response:
    """`POST /v1/nodes/tokens`."""
    _check_joinable(services)
    asked = await read_struct(request, services.budget, JoinTokenRequest, default=JoinTokenRequest())
    terms = services.terms
    made = await create_join_token(services.registry, asked, services.wall(), region=terms.region, zone=terms.zone)
    return json_answer(made, status=201)


async def join(request: Request, services: NodeServices) -> Response:
    """`POST /v1/nodes/join`: by a token, without a key of the API."""
    _check_joinable(services)
    if format_of_body(header(request.scope, b"content-type")) is not BodyFormat.JSON:
        raise BadInput("This takes application/json only.", code="unsupported_media_type")
    body = await read_body(request.scope, request.receive, SMALL_BODY, services.budget, NOBODY)
    try:
        asked = read_json(body, JoinRequest, patient=False)
    finally:
        services.budget.give_back(len(body), NOBODY)
    is_up = _report_of(services, asked.node) is not None
    record = await join_node(services.registry, asked, services.wall(), is_up=is_up)
    assert record.labels is not None  # noqa: S101 - its token has said them
    labels = record.labels
    joined = JoinedNode(
        node=record.node, region=labels.region, zone=labels.zone, pool=labels.pool, purchase=labels.purchase,
        bus_url=services.terms.bus_url, expires_at=record.expires_at,
    )  # fmt: skip
    return json_answer(joined, status=201)


async def cordon(request: Request, services: NodeServices) -> Response:
    """`POST /v1/nodes/{node}/cordon`."""
    return await _set_state(request, services, NodeState.CORDONED)


async def uncordon(request: Request, services: NodeServices) -> Response:
    """`POST /v1/nodes/{node}/uncordon`."""
    return await _set_state(request, services, NodeState.OPEN)


async def drain(request: Request, services: NodeServices) -> Response:
    """`POST /v1/nodes/{node}/drain`."""
    return await _set_state(request, services, NodeState.DRAINING)


async def revoke(request: Request, services: NodeServices) -> Response:
    """`POST /v1/nodes/{node}/revoke`."""
    node = _named(request)
    return _answer(services, await revoke_node(services.registry, node, services.wall()))


async def _set_state(request: Request, services: NodeServices, state: NodeState) -> Response:
    node = _named(request)
    is_known = _report_of(services, node) is not None
    return _answer(services, await set_node_state(services.registry, node, state, is_known=is_known))


def _answer(services: NodeServices, record: NodeRecord) -> Response:
    return json_answer(node_info(record.node, _report_of(services, record.node), record, services.wall()))


def _report_of(services: NodeServices, node: str) -> dict[str, object] | None:
    return next((report for report in services.calls.nodes() if report["node"] == node), None)


def _named(request: Request) -> str:
    return check_name(request.path_params["node"], "node")


def _check_joinable(services: NodeServices) -> None:
    if not services.terms.bus_url:
        raise Unavailable(
            "Nodes cannot join by this gateway: it was started without --node-issuer.", code="misconfigured"
        )


CHANGED = ("bad_input", "not_found", "conflict")
NODES = (
    Operation(
        method="GET", path="/v1/nodes", name="listNodes", endpoint=list_nodes, scopes=("operator",), answer=NodeList,
        about="The nodes: whether they are up, their labels, slices, and what they guarantee.",
    ),
    Operation(
        method="POST", path="/v1/nodes/tokens", name="createJoinToken", endpoint=create_token, status=201,
        about="Make a token by which one node may join, once; it is shown only here.", scopes=("operator",),
        request=JoinTokenRequest, body_required=False, answer=NewJoinToken,
        tells=("node", "zone", "pool", "purchase", "expires_in_s"),
        errors=(*BODY, "quota_exceeded", "conflict", "misconfigured"),
    ),
    Operation(
        method="POST", path="/v1/nodes/join", name="joinNode", endpoint=join, status=201,
        about="Give a node an identity on the bus, for a token that is used up by this. No API key is needed.",
        request=JoinRequest, answer=JoinedNode,
        errors=(*BODY, "unauthenticated", "conflict", "quota_exceeded", "misconfigured"),
    ),
    Operation(
        method="GET", path="/v1/nodes/{node}", name="getNode", endpoint=show_node, scopes=("operator",),
        about="One node.", answer=NodeInfo, errors=("bad_input", "not_found"),
    ),
    Operation(
        method="POST", path="/v1/nodes/{node}/cordon", name="cordonNode", endpoint=cordon, scopes=("operator",),
        about="Start nothing new on a node; what runs there goes on.", answer=NodeInfo, errors=CHANGED,
    ),
    Operation(
        method="POST", path="/v1/nodes/{node}/uncordon", name="uncordonNode", endpoint=uncordon,
        scopes=("operator",), about="Let a node that was cordoned or drained take containers again.",
        answer=NodeInfo, errors=CHANGED,
    ),
    Operation(
        method="POST", path="/v1/nodes/{node}/drain", name="drainNode", endpoint=drain, scopes=("operator",),
        about="End a node's containers, each once its calls are done, and start nothing new there.",
        answer=NodeInfo, errors=CHANGED,
    ),
    Operation(
        method="POST", path="/v1/nodes/{node}/revoke", name="revokeNode", endpoint=revoke, scopes=("operator",),
        about="End a node's identity: within five seconds it is off the bus, and does not come back.",
        answer=NodeInfo, errors=CHANGED,
    ),
)  # fmt: skip
