"""A real server of the bus lets in who has joined, as its own node and no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilotlight_core.bus import Bus, BusDown, BusError, bus_users, connect
from pilotlight_core.bus.client import NatsClient, header_block
from pilotlight_core.bus.inbox import Inbox
from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.node_messages import CommandReply, NodeRenewal, NodeReport, RenewNode, Stop
from pilotlight_core.model.records.nodes import LIFE_S, NodeLabels, NodeRecord
from pilotlight_gateway.nodes.admission_claims import AdmissionAsk
from pilotlight_gateway.nodes.node_admission import named_node, why_not_admitted
from pilotlight_gateway.nodes.node_book import revoke_node
from pilotlight_gateway.nodes.open_connections import OpenConnections
from pilotlight_runtime.node.node_credentials import CredentialRenewal, NodeCredentials, read_credentials
from tests.gateway.nodes.joined_bus import REGION, JoinedBus, joined_bus

NEVER_STORED = header_block({"Nats-Expected-Last-Sequence": "123456789"})


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[JoinedBus]:
    async with joined_bus(tmp_path_factory.mktemp("joined")) as place:
        yield place


async def refusals(place: JoinedBus, node: str, key: Nkey, verb: str, asked: list[str]) -> list[str]:
    """Of these subjects, those that the server refuses to a node."""
    errors: list[str] = []

    async def tell(error: Exception) -> None:
        errors.append(str(error).lower())

    client = NatsClient()
    client.use_key(key)
    inbox = Inbox(client, bus_users.agent(node).inbox)
    await client.connect(place.url, name=f"agent {node}", error_cb=tell, **client.proof)
    found = []
    try:
        await inbox.start()
        for subject in asked:
            errors.clear()
            if verb == "publish":
                client.publish_nowait(subject, b"", headers=NEVER_STORED)
            else:
                await client.subscribe_raw(subject, lambda *_: None)
            await inbox.flush(5.0)  # behind it on the same way, so a refusal comes before
            if any("permissions violation" in error for error in errors):
                found.append(subject)
    finally:
        await client.close()
    return found


async def test_a_joined_node_does_an_agents_work(place: JoinedBus) -> None:
    """It reports, and answers commands."""
    key, heard = await place.join("works"), asyncio.Event()
    async with place.connect_agent("works", key) as agent:
        sub = await place.bus.subscribe(subjects.beat(REGION, "works"), lambda *_: heard.set())
        await place.bus.flush()
        agent.publish_nowait(subjects.beat(REGION, "works"), report_of("works"))
        async with asyncio.timeout(5):
            await heard.wait()
        await sub.unsubscribe()


def report_of(node: str) -> NodeReport:
    return NodeReport(node=node, instance="i", seq=1, region=REGION, zone="z1", sandbox="process")


async def test_it_can_neither_speak_nor_hear_as_another(place: JoinedBus) -> None:
    """The server refuses all that is another node's, a role's, or everybody's; what is its own is allowed."""
    key = await place.join("own")
    await place.join("other")
    others = [subject for subject in bus_users.agent("other").publish if ".other" in subject]
    assert len(others) >= 10
    roles = [*others, subjects.command(REGION, "own"), "$KV.TENANCY.node.own", "$SYS._INBOX.a.b", "_GW.x.1"]

    assert await refusals(place, "own", key, "publish", roles) == roles
    heard = [subject for subject in bus_users.agent("other").subscribe if "other" in subject]
    heard += [">", "$SYS.REQ.USER.AUTH", subjects.renew(REGION), "_AGENT.>"]
    assert await refusals(place, "own", key, "subscribe", heard) == heard
    own = [subject.replace("*", "x").replace(">", "x") for subject in bus_users.agent("own").publish]
    assert await refusals(place, "own", key, "publish", [one for one in own if not one.startswith("$")]) == []
    assert await refusals(place, "own", key, "subscribe", list(bus_users.agent("own").subscribe)) == []


async def test_a_stranger_is_not_let_in(place: JoinedBus) -> None:
    """With a key that nobody knows, with a node's key under another name, or with a node's name alone."""
    key = await place.join("known")
    await place.join("neighbour")
    for node, given in (("known", Nkey.generate(NkeyKind.USER)), ("neighbour", key), ("nobody", key)):
        with pytest.raises(BusDown, match="does not let it in"):
            async with place.connect_agent(node, given, timeout=1.0):
                pass


async def test_a_revoked_node_is_off_within_five_seconds_and_stays_off(place: JoinedBus) -> None:
    """Its neighbour notices nothing."""
    key, kept = await place.join("revoked"), await place.join("kept")
    async with place.connect_agent("revoked", key) as out, place.connect_agent("kept", kept) as stays:
        closed = asyncio.Event()
        began = time.monotonic()
        watching = asyncio.ensure_future(until_down(out, closed))
        await revoke_node(place.registry, "revoked", time.time())
        async with asyncio.timeout(5.0):  # the bound that is promised
            await closed.wait()
        watching.cancel()
        print(f"closed after {time.monotonic() - began:.2f} s")
        with pytest.raises(BusError):
            await out.flush(1.0)
        assert stays.statistics().reconnects == 0
        await stays.flush()
    with pytest.raises(BusDown, match="it is a node by a token, and was revoked"):
        async with place.connect_agent("revoked", key, timeout=1.0):
            pass


async def until_down(bus: Bus, closed: asyncio.Event) -> None:
    while bus.connected:  # noqa: ASYNC110 - the server closes it, which rings no bell of ours
        await asyncio.sleep(0.02)
    closed.set()


async def test_an_identity_is_renewed_over_the_connection_that_is_there(place: JoinedBus) -> None:
    """With a new key; the one before opens until the next renewal, and the connection stays."""
    keys = [await place.join("renews"), *(Nkey.generate(NkeyKind.USER) for _ in range(2))]
    async with place.connect_agent("renews", keys[0]) as agent:
        for key in keys[1:]:
            answer = await agent.request(subjects.renew(REGION, "renews"), RenewNode(key=key.public), 5.0)
            assert isinstance(answer, NodeRenewal)
            assert answer.expires_at == pytest.approx(time.time() + LIFE_S, abs=60)
        refused = await agent.request(subjects.renew(REGION, "renews"), RenewNode(key="UNONE"), 5.0)
        assert "key" in refused.reason
        assert agent.statistics().reconnects == 0
    for key in keys[1:]:
        async with place.connect_agent("renews", key):
            pass
    with pytest.raises(BusDown):
        async with place.connect_agent("renews", keys[0], timeout=1.0):
            pass


async def test_an_agent_comes_back_with_the_key_that_it_renewed(place: JoinedBus, tmp_path: Path) -> None:
    """Twice, so that the one which it joined with opens nothing any more; its connection is cut in between."""
    path, key = tmp_path / "node.json", await place.join("agent")
    held = NodeCredentials(node="agent", region=REGION, zone="z1", spot=False, bus_url=place.url, seed=key.seed)
    async with place.connect_agent("agent", key) as agent:
        renewing = CredentialRenewal(agent, path, held, time.time)
        for _ in range(2):
            assert await renewing.renew()
        assert agent.statistics().reconnects == 0
        back = asyncio.Event()
        agent.on_reconnect.append(lambda: ring(back))
        keeper = bus_users.connection_keeper()
        async with connect(
            place.url, name="k", inbox=keeper.inbox, makes_streams=False, key=place.issuer.keeper
        ) as connections:
            assert await OpenConnections(connections).close("agent-agent") == 1
        async with asyncio.timeout(20):
            await back.wait()
        assert read_credentials(path).key().public != key.public


async def ring(bell: asyncio.Event) -> None:
    bell.set()


async def test_commands_reach_a_joined_node(place: JoinedBus) -> None:
    """They come with a reply subject that it may answer on."""
    key = await place.join("commanded")
    async with place.connect_agent("commanded", key) as agent:
        await agent.subscribe(
            subjects.command(REGION, "commanded"),
            lambda _subject, _message, reply: agent.publish_nowait(reply, CommandReply(ok=True)),
        )
        await agent.flush()
        controller = bus_users.controller()
        async with connect(
            place.server.url_of("controller"), name="controller", inbox=controller.inbox, makes_streams=False
        ) as commands:
            stop = Stop(epoch=1, container="c")
            assert (await commands.request(subjects.command(REGION, "commanded"), stop, 5.0)).ok


def asked(key: Nkey, *, name: str = "agent n1", nonce: str = "made-up", signed: str = "made-up") -> AdmissionAsk:
    return AdmissionAsk(
        server="S", connection="U", name=name, key=key.public, nonce=nonce, signature=key.sign(signed.encode())
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"revoked_at": 1.0}, "n1: it was revoked"),
        ({"expires_at": 10.0}, "n1: its identity has expired"),
        ({"keys": ()}, "n1 has another key"),
        ({"labels": None}, "n1: it has not joined"),
    ],
)
def test_who_is_let_in(changes: dict[str, object], why: str) -> None:
    """By the record of the node, at an instant."""
    key = Nkey.generate(NkeyKind.USER)
    fields = {"labels": NodeLabels(region="r", zone="z"), "keys": (key.public,), "expires_at": 11.0, **changes}
    record = NodeRecord(node="n1", **fields)  # type: ignore[arg-type]

    assert why_not_admitted(asked(key), "n1", record, 10.0) == why
    assert why_not_admitted(asked(key), "n1", None, 10.0) == "there is no node n1"


def test_a_signature_of_something_else_proves_nothing() -> None:
    """It may have been recorded."""
    key = Nkey.generate(NkeyKind.USER)
    record = NodeRecord(node="n1", labels=NodeLabels(region="r", zone="z"), keys=(key.public,), expires_at=11.0)

    assert why_not_admitted(asked(key, signed="before"), "n1", record, 10.0) == "n1: the signature is wrong"
    assert why_not_admitted(asked(key, nonce="", signed=""), "n1", record, 10.0) == "n1: the signature is wrong"


@pytest.mark.parametrize(("name", "node"), [("agent n1", "n1"), ("n1", ""), ("agent a.b", ""), ("agent *", "")])
def test_the_node_that_a_client_names(name: str, node: str) -> None:
    """Only what can be one."""
    assert named_node(asked(Nkey.generate(NkeyKind.USER), name=name)) == node
