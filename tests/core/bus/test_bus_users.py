"""Every role has the permissions that it needs on the bus, and no others."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.bus import Bus, BusError, NoResponders, bus_users, connect
from pilotlight_core.bus.client import NatsClient, header_block
from pilotlight_core.bus.inbox import Inbox
from pilotlight_core.bus.streams import DEFAULT_LIMITS, stream_configs
from pilotlight_core.host.registry import Registry, TenantRecord
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_core.model.messages.logs import LogBatch
from pilotlight_core.model.messages.node_messages import CommandReply, Stop
from pilotlight_core.model.messages.usage import UsageBatch
from pilotlight_supervisor.embedded_bus import EmbeddedNats, embedded_nats, find_nats_server

INFRA = Path(__file__).parents[3] / "infra"
NODES = ("n1", "n2")
ROLES = {user.name: user for user in bus_users.everybody(NODES)}
GATEWAY, CONTROLLER, DUTIES, AGENT = ROLES["gateway"], ROLES["controller"], ROLES["duties"], ROLES["agent-n1"]
R = "local"
NEVER_STORED = header_block({"Nats-Expected-Last-Sequence": "123456789"})


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedNats]:
    """A server with all users, and its streams."""
    async with embedded_nats(tmp_path_factory.mktemp("bus"), nodes=NODES) as server:
        async with as_role(server, GATEWAY):
            pass
        yield server


def as_role(server: EmbeddedNats, user: bus_users.BusUser) -> Any:
    """A connection such as that role's process makes."""
    return connect(
        server.url_of(user.name), name=user.name, inbox=user.inbox, makes_streams=user.name in ("gateway", "operator")
    )


async def refused(server: EmbeddedNats, user: bus_users.BusUser, verb: str, subject: str) -> bool:
    """Whether the server refuses the role to publish or subscribe."""
    errors: list[str] = []

    async def tell(error: Exception) -> None:
        errors.append(str(error).lower())

    client = NatsClient()
    inbox = Inbox(client, user.inbox)
    await client.connect(server.url_of(user.name), error_cb=tell)
    try:
        await inbox.start()
        if verb == "publish":
            client.publish_nowait(subject, b"", headers=NEVER_STORED)
        else:
            await client.subscribe_raw(subject, lambda *_: None)
        await inbox.flush(5.0)  # behind it on the same way, so a refusal comes before
    finally:
        await client.close()
    found = [error for error in errors if "permissions violation" in error]
    assert len(found) == len(errors) <= 1
    return bool(found)


DENIED = [
    # An agent: the registry, calls, other nodes, streams, other roles' answers.
    (AGENT, "publish", "$KV.TENANCY.tenant.acme"),
    (AGENT, "publish", "$KV.LEASES.controller"),
    (AGENT, "publish", "$KV.SHARDS.1"),
    (AGENT, "publish", "$KV.IDEMPOTENCY.abc"),
    (AGENT, "publish", "$KV.WEBHOOKS.acme.x"),
    (AGENT, "publish", "$JS.API.DIRECT.GET.KV_WEBHOOKS"),
    (AGENT, "publish", "$JS.API.STREAM.MSG.GET.KV_DELIVERIES"),
    (AGENT, "subscribe", "$KV.WEBHOOKS.>"),
    (AGENT, "publish", subjects.run(R, "n1", "i")),
    (AGENT, "publish", subjects.run(R, "n2", "i")),
    (AGENT, "publish", subjects.command(R, "n2")),
    (AGENT, "publish", subjects.control(R, "n2")),
    (AGENT, "publish", subjects.link_offers(R, "n1", "i")),
    (AGENT, "publish", subjects.link_offers(R, "n2", "i")),
    (AGENT, "publish", subjects.link_offers(R, "", "gw")),
    (AGENT, "subscribe", subjects.link_offers(R, "n2", "i")),
    (AGENT, "subscribe", subjects.link_offers(R, "", "gw")),
    (CONTROLLER, "publish", subjects.link_offers(R, "n1", "i")),
    (CONTROLLER, "subscribe", subjects.link_offers(R, "n1", "i")),
    (DUTIES, "subscribe", subjects.link_offers(R, "n1", "i")),
    (AGENT, "publish", subjects.beat(R, "n2")),
    (AGENT, "publish", subjects.ran(R, "n2")),
    (AGENT, "publish", subjects.credit(R, "n2", "v")),
    (AGENT, "publish", subjects.reply(R, "gw", "n2")),
    (AGENT, "publish", subjects.usage(R, "n1", "acme")),
    (AGENT, "publish", subjects.usage(R, "n2", "acme")),
    (AGENT, "publish", subjects.storage(R, "n2")),
    (AGENT, "publish", subjects.logs(R, "n1", "acme", "app", "fn")),
    (AGENT, "publish", "$KV.LAYOUTS.n1"),
    (AGENT, "publish", "$JS.API.DIRECT.GET.KV_LAYOUTS"),
    (AGENT, "publish", "$JS.API.STREAM.MSG.GET.KV_PLATFORM"),
    (AGENT, "publish", subjects.bindings(R, "n1")),
    (AGENT, "publish", "usage.local.acme"),
    (AGENT, "publish", subjects.logs(R, "n2", "acme", "app", "fn")),
    (AGENT, "publish", subjects.logs_before_nodes(R, "acme", "app", "fn")),
    (AGENT, "publish", "$KV.BINDINGS.local.n1.c1"),
    (AGENT, "publish", "$JS.API.DIRECT.GET.KV_BINDINGS"),
    (AGENT, "publish", subjects.demand(R, "v")),
    (AGENT, "publish", subjects.demands(R, 3)),
    (AGENT, "subscribe", subjects.demands(R)),
    (AGENT, "publish", subjects.to_home(R, "gw")),
    (AGENT, "publish", "$JS.API.STREAM.PURGE.USAGE"),
    (AGENT, "publish", "$JS.API.STREAM.DELETE.LOGS"),
    (AGENT, "publish", "$JS.API.STREAM.UPDATE.USAGE"),
    (AGENT, "publish", "$JS.API.STREAM.MSG.GET.KV_REGISTRY"),
    (AGENT, "publish", "$JS.API.DIRECT.GET.LOGS"),
    (AGENT, "publish", "$JS.API.CONSUMER.CREATE.USAGE"),
    (AGENT, "publish", "_GW.x.1"),
    (AGENT, "publish", "_AGENT.n2.x.1"),
    (AGENT, "subscribe", subjects.run(R, "n2", "i")),
    (AGENT, "subscribe", subjects.run(R, "*", "*")),
    (AGENT, "subscribe", f"pl.{R}.node.>"),
    (AGENT, "subscribe", subjects.reply(R, "*")),
    (AGENT, "subscribe", subjects.beat(R)),
    (AGENT, "subscribe", "$KV.REGISTRY.>"),
    (AGENT, "subscribe", "usage.>"),
    (AGENT, "subscribe", "logs.>"),
    (AGENT, "subscribe", "_AGENT.>"),
    (AGENT, "subscribe", "_CTL.>"),
    (AGENT, "subscribe", "_GW.>"),
    (AGENT, "subscribe", "_INBOX.>"),
    (AGENT, "subscribe", "_PL.n2.>"),
    (AGENT, "subscribe", ">"),
    # The controller: calls, usage, what gateways write.
    (CONTROLLER, "publish", subjects.usage(R, "n1", "acme")),
    (CONTROLLER, "publish", subjects.logs(R, "n1", "acme", "app", "fn")),
    (CONTROLLER, "publish", subjects.run(R, "n1", "i")),
    (CONTROLLER, "publish", subjects.control(R, "n1")),
    (CONTROLLER, "publish", subjects.reply(R, "gw")),
    (CONTROLLER, "publish", subjects.beat(R, "n1")),
    (CONTROLLER, "publish", "$KV.TENANCY.tenant.acme"),
    (CONTROLLER, "publish", "$KV.LEASES.gateway.one"),
    (CONTROLLER, "publish", "$KV.LEASES.duty.fold"),
    (CONTROLLER, "publish", "$JS.API.STREAM.PURGE.KV_REGISTRY"),
    (CONTROLLER, "publish", "$JS.API.STREAM.UPDATE.KV_REGISTRY"),
    (CONTROLLER, "subscribe", subjects.reply(R, "*")),
    (CONTROLLER, "subscribe", subjects.run(R, "n1", "*")),
    (CONTROLLER, "subscribe", "usage.>"),
    (CONTROLLER, "subscribe", "$KV.IDEMPOTENCY.>"),
    (CONTROLLER, "subscribe", "$KV.WEBHOOKS.>"),
    (CONTROLLER, "publish", "$JS.API.DIRECT.GET.KV_WEBHOOKS"),
    # Duties: everything that lives.
    (DUTIES, "publish", subjects.usage(R, "n1", "acme")),
    (DUTIES, "publish", subjects.bindings(R, "n1")),
    (DUTIES, "publish", subjects.command(R, "n1")),
    (DUTIES, "publish", subjects.run(R, "n1", "i")),
    (DUTIES, "publish", "$KV.TENANCY.key.x"),
    (DUTIES, "publish", "$KV.REGISTRY.app.x.y"),
    (DUTIES, "publish", "$KV.LEASES.gateway.one"),
    (DUTIES, "publish", "$JS.API.STREAM.DELETE.USAGE"),
    (DUTIES, "publish", "$JS.API.STREAM.PURGE.KV_WEBHOOKS"),
    (DUTIES, "publish", "$JS.API.STREAM.PURGE.KV_JOBS"),
    (DUTIES, "publish", "$JS.API.STREAM.PURGE.JOBS"),
    (DUTIES, "publish", "$JS.API.STREAM.MSG.GET.KV_TENANCY"),
    (DUTIES, "subscribe", "$KV.REGISTRY.>"),
    (DUTIES, "subscribe", f"pl.{R}.>"),
    # A gateway: commands, what agents say, usage, other roles' leases; it makes streams and empties none.
    (GATEWAY, "publish", subjects.command(R, "n1")),
    (GATEWAY, "publish", "$KV.BINDINGS.local.n1.c1"),
    (GATEWAY, "publish", subjects.beat(R, "n1")),
    (GATEWAY, "publish", subjects.credit(R, "n1", "v")),
    (GATEWAY, "publish", subjects.shortage(R, "v")),
    (GATEWAY, "publish", subjects.shortages(R)),
    (GATEWAY, "publish", "$KV.LEASES.controller"),
    (GATEWAY, "publish", "$KV.LEASES.duty.fold"),
    (GATEWAY, "publish", "$JS.API.STREAM.PURGE.KV_REGISTRY"),
    (GATEWAY, "publish", "$JS.API.STREAM.DELETE.KV_REGISTRY"),
    (GATEWAY, "publish", "$JS.API.STREAM.CREATE.OTHER"),
    *((GATEWAY, "publish", f"$JS.API.STREAM.{verb}.AUDIT") for verb in ("UPDATE", "PURGE", "DELETE", "MSG.DELETE")),
    (GATEWAY, "publish", "$JS.API.DIRECT.GET.USAGE"),
    (GATEWAY, "publish", "_CTL.x.1"),
    (GATEWAY, "subscribe", subjects.run(R, "n1", "*")),
    (GATEWAY, "subscribe", subjects.command(R, "n1")),
    (GATEWAY, "subscribe", "_CTL.>"),
    (GATEWAY, "subscribe", ">"),
]


@pytest.mark.parametrize(("user", "verb", "subject"), DENIED, ids=[f"{u.name} {v} {s}" for u, v, s in DENIED])
async def test_nobody_does_anothers_work(
    server: EmbeddedNats, user: bus_users.BusUser, verb: str, subject: str
) -> None:
    """What is not a role's is refused by the server."""
    assert await refused(server, user, verb, subject)


@pytest.mark.parametrize("user", list(ROLES.values()), ids=list(ROLES))
async def test_what_is_granted_is_allowed(server: EmbeddedNats, user: bus_users.BusUser) -> None:
    """Each subject of each list, so that none is written wrong."""
    for subject in user.publish:
        if not subject.startswith("$JS.API.STREAM."):  # an empty request would be carried out
            assert not await refused(server, user, "publish", concrete(subject)), subject
    for subject in user.subscribe:
        assert not await refused(server, user, "subscribe", subject), subject


def test_no_agent_publishes_where_a_server_answers() -> None:
    """A server answers with its own rights wherever who asks says: into a bucket, or to its own requests."""
    taken = [subject for config in stream_configs(DEFAULT_LIMITS) for subject in config["subjects"]]
    answered = [subject.removesuffix(">") for subject in (*taken, "$JS.>", "$SYS.>", "$SRV.>")]

    assert [each for each in AGENT.publish if each.startswith((*answered, "*", ">"))] == []
    before = bus_users.agent("n1", of_before=True)
    assert set(before.publish) > set(AGENT.publish)
    assert "usage.*.n1.*" in before.publish


def concrete(pattern: str) -> str:
    """A subject that a pattern matches, outside of what streams keep where that can be."""
    return re.sub(r"\*|>", "x", pattern)


def patterns_of(function: Any) -> str:
    """The subject that a function of `subjects` returns, with a name for each part."""
    return str(function(*("x" for _ in inspect.signature(function).parameters)))


def covers(pattern: str, subject: str) -> bool:
    """Whether a pattern matches a subject."""
    parts = (r"[^.]+" if part == "*" else ".+" if part == ">" else re.escape(part) for part in pattern.split("."))
    return re.fullmatch(r"\.".join(parts), subject) is not None


MADE = [
    function
    for _, function in inspect.getmembers(subjects, inspect.isfunction)
    if function.__module__ == subjects.__name__ and function not in (subjects.shard_of, subjects.logs_before_nodes)
]


@pytest.mark.parametrize("function", MADE, ids=[function.__name__ for function in MADE])
def test_every_subject_is_somebodys(function: Any) -> None:
    """`bus_users` grants publishing and subscribing to every subject to some role beside the operator."""
    subject = patterns_of(function).replace(".node.x.", ".node.n1.").replace(".beat.x", ".beat.n1")
    subject = re.sub(r"(^usage.x|^logs.x|credit|reply)\.x", r"\1.n1", subject)
    roles = [user for user in ROLES.values() if user.name != bus_users.OPERATOR]
    stored = subject.startswith(("usage.", "logs.", "audit.", "compared."))

    assert any(covers(pattern, subject) for user in roles for pattern in user.publish)
    assert stored or any(covers(pattern, subject) for user in roles for pattern in user.subscribe)


@pytest.mark.parametrize("stream", [config["name"] for config in stream_configs(DEFAULT_LIMITS)])
def test_every_stream_is_somebodys(stream: str) -> None:
    """Some role creates it, some role writes it, some role reads it."""
    config = next(config for config in stream_configs(DEFAULT_LIMITS) if config["name"] == stream)
    rights = [right for user in ROLES.values() if user.name != bus_users.OPERATOR for right in user.publish]
    (topic,) = config["subjects"]

    assert f"$JS.API.STREAM.CREATE.{stream}" in rights
    assert {f"$JS.API.DIRECT.GET.{stream}", f"$JS.API.STREAM.MSG.GET.{stream}"} & set(rights)
    assert any(right.startswith(topic.removesuffix(">")) for right in rights)


async def test_the_roles_work_together(server: EmbeddedNats) -> None:
    """A lease each, a tenant, a command and its answer, usage stored and read, a log trimmed."""
    async with (
        as_role(server, GATEWAY) as gateway,
        as_role(server, CONTROLLER) as controller,
        as_role(server, DUTIES) as duties,
        as_role(server, AGENT) as agent,
        Registry(gateway) as written,
        Registry(controller) as read,
        gateway.lease("gateway.one", "one"),
        controller.lease("controller", "controller"),
        duties.lease("duty.fold", "duties"),
    ):
        await written.put_tenant(TenantRecord(name="acme", created_at=1.0))
        assert await read.tenant("acme") is not None
        await answer_commands(agent)
        assert (await controller.request(subjects.command(R, "n1"), Stop(epoch=1, container="c"), 5.0)).ok
        with pytest.raises(NoResponders):
            await controller.request(subjects.command(R, "n2"), Stop(epoch=1, container="c"), 5.0)

        await gateway.store(subjects.usage(R, "n1", "acme"), UsageBatch(events=()), id="1")
        await gateway.store(subjects.logs(R, "n1", "acme", "app", "fn"), LogBatch(lines=()), id="1")
        assert [stored.subject async for stored in duties.read_stream("USAGE", "usage.>")] == ["usage.local.n1.acme"]
        lines = gateway.read_stream("LOGS", subjects.logs(R, "*", "acme", "app", "*"))
        assert [stored.seq async for stored in lines] == [1]
        assert await duties.purge_before("LOGS", "logs.>", 2) == 1


async def answer_commands(agent: Bus) -> None:
    """As an agent does."""
    await agent.subscribe(
        subjects.command(R, "n1"), lambda _s, _message, reply: agent.publish_nowait(reply, CommandReply(ok=True))
    )
    await agent.flush()


async def test_who_may_write_cannot_wipe(server: EmbeddedNats) -> None:
    """A rollup, by which one message removes all others, is refused by every stream that tenants' data is in."""
    async with as_role(server, GATEWAY) as gateway:
        for bus, subject in (
            (gateway, subjects.usage(R, "n1", "acme")), (gateway, subjects.logs(R, "n1", "acme", "app", "fn")),
            (gateway, "$KV.TENANCY.tenant.x"), (gateway, "$KV.REGISTRY.app.x.y"), (gateway, "$KV.IDEMPOTENCY.x"),
            (gateway, "$KV.SHARDS.1"),
            (gateway, "$KV.WEBHOOKS.acme.x"), (gateway, "$KV.DELIVERIES.acme.x.y"),
        ):  # fmt: skip
            with pytest.raises(BusError, match="rollup not permitted"):
                await bus.jetstream.store(subject, b"x", headers={"Nats-Rollup": "all"})


async def test_what_is_refused_fails_in_time(server: EmbeddedNats) -> None:
    """A refused request gets no answer, which the timeout bounds; the role stays connected."""
    async with as_role(server, AGENT) as agent:
        with pytest.raises(BusError):
            await agent.store("$KV.TENANCY.tenant.evil", Cancel(call_id="x"), id="1", timeout=0.2)
        await agent.flush()

        assert agent.connected
    async with as_role(server, GATEWAY) as gateway:
        assert await gateway.kv("REGISTRY").get("tenant.evil") is None


def test_a_node_is_one_word() -> None:
    """No node name widens what its agent may do."""
    for name in ("*", ">", "a.b", 'a"', ""):
        with pytest.raises(BadInput):
            bus_users.agent(name)


def test_the_infrastructure_grants_the_same(tmp_path: Path) -> None:
    """`infra/nats.conf` holds what the module prints; its passwords are made once, and the server takes them."""
    block = bus_users.authorization(bus_users.everybody(["local"]), lambda user: f"${user.variable}")
    passwords = tmp_path / "env"
    for _ in range(2):
        subprocess.run([INFRA / "setup" / "bus_passwords.sh", passwords], check=True)
    made = dict(line.split("=") for line in passwords.read_text().splitlines())

    assert block in (INFRA / "nats.conf").read_text()
    assert made.keys() == {user.variable for user in bus_users.everybody(["local"])}
    assert len(set(made.values())) == len(made)
    assert passwords.stat().st_mode & 0o777 == 0o600
    subprocess.run(
        [find_nats_server(), "-t", "-c", INFRA / "nats.conf"],
        check=True,
        capture_output=True,
        env={**os.environ, **made},
    )
    compose = (INFRA / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(PILOTLIGHT_BUS_\w+)", compose)) == made.keys()


@pytest.mark.parametrize(
    ("arguments", "agents"),
    [
        ((), ["agent-local"]),
        (("n1", "n2"), ["agent-n1", "agent-n2"]),
        (("--issuer", "AX", "--keeper", "UX"), []),
        (("n1", "--issuer", "AX", "--keeper", "UX"), ["agent-n1"]),
    ],
)
def test_where_nodes_join_none_has_a_user_unless_it_is_named(arguments: tuple[str, ...], agents: list[str]) -> None:
    """What the command prints; a user that nobody needs is one whose password can be lost."""
    command = [sys.executable, "-m", "pilotlight_core.bus.bus_users", *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r'user: "(agent-\S+)"', said) == agents
