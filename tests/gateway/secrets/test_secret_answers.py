"""Which node is given which values, and in what they travel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from pilotlight_core.bus import Bus, BusTimeout, bus_users, connect
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.host.sealed_boxes import BoxReader
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import SecretsAnswer, SecretsWanted
from pilotlight_gateway.secrets.data_keys import HELD_S
from pilotlight_gateway.secrets.platform_keys import MemoryPlatformKey
from pilotlight_gateway.secrets.secret_answers import ContainerSecrets, secret_answers
from pilotlight_gateway.secrets.secret_records import revision_of
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.nodes import binding
from tests.builders.specs import function_spec, version_record
from tests.gateway.secrets.makers import Vaulted


class Answering:
    """A version `ver_1` of `acme` that names `token` and `key`, bound as `c1` on `n1`; `other` is set too."""

    def __init__(self, kept: Vaulted | None = None) -> None:
        self.kept = kept or Vaulted()
        self.registry, self.bindings = MemoryRegistry(), MemoryBindings()
        self.secrets = ContainerSecrets(self.kept.vault, self.registry, self.bindings)
        self.reader = BoxReader()
        spec = function_spec("f", secrets={"TOKEN": "token", "/run/secrets/key": "key", "AGAIN": "token"})
        self.registry.versions["ver_1"] = version_record(spec, id="ver_1", tenant="acme")
        self.bindings.bind(binding("c1", "ver_1", node="n1", tenant="acme"))

    async def fill(self) -> None:
        for name in ("token", "key", "other"):
            await self.kept.set(name, f"the value of {name}")

    async def asked(self, *, node: str = "n1", container: str = "c1") -> SecretsAnswer:
        return await self.secrets.answer(node, SecretsWanted(container=container, public_key=self.reader.public))


@pytest.fixture
async def answering(anyio_backend: str) -> Answering:
    made = Answering()
    await made.fill()
    return made


async def test_a_container_gets_what_its_version_names(answering: Answering) -> None:
    """Sealed to the load that asks, each value once, and no other of the tenant."""
    answer = await answering.asked()
    values = msgspec.msgpack.decode(answering.reader.open(answer.sealed, "c1"))

    assert values == {"token": "the value of token", "key": "the value of key"}
    records = answering.kept.store.records
    assert answer.revision == revision_of({name: records["acme", name] for name in ("token", "key")})
    assert b"the value" not in msgspec.msgpack.encode(answer)


async def test_nobody_else_gets_anything(answering: Answering) -> None:
    """Neither another node for the same container, nor one for a container that is not, or not any more."""
    refused = SecretsAnswer(reason="not_bound")
    assert await answering.asked(node="n2") == refused
    assert await answering.asked(container="c2") == refused
    answering.bindings.end("c1")
    assert await answering.asked() == refused


async def test_a_version_that_is_deleted_gets_nothing(answering: Answering) -> None:
    """Nobody knows what it names."""
    answering.registry.versions.clear()
    assert await answering.asked() == SecretsAnswer(reason="not_bound")


async def test_what_is_missing_or_lost_is_named(answering: Answering) -> None:
    """So that its tenant can set it."""
    del answering.kept.store.records["acme", "key"]
    assert await answering.asked() == SecretsAnswer(reason="missing", missing=("key",))
    await answering.kept.set("key")
    answering.kept.store.keys.clear()
    assert await answering.asked() == SecretsAnswer(reason="lost", missing=("key", "token"))


async def test_a_key_that_cannot_be_used_is_another_reason_than_a_wrong_one(answering: Answering) -> None:
    """Another gateway may have the right one. A service that is away for a moment is not noticed."""
    answering.kept.platform.down = True
    assert (await answering.asked()).sealed
    answering.kept.clock.at += HELD_S
    assert await answering.asked() == SecretsAnswer(reason="down")
    other = Answering(Vaulted(store=answering.kept.store, platform=MemoryPlatformKey(name="memory:2")))
    assert await other.asked() == SecretsAnswer(reason="other_key")


@asynccontextmanager
async def agent_of(server_url: str, node: str) -> AsyncIterator[Bus]:
    """A connection as a node's agent has it."""
    async with connect(server_url, name=node, inbox=bus_users.agent(node).inbox, makes_streams=False) as bus:
        yield bus


async def test_agents_are_answered_over_the_bus(answering: Answering, bus: Bus, server_url: str) -> None:
    """By the node in the subject; a question with a key that is none is not answered, and ends no other."""
    region, wanted = f"r{token(8)}", SecretsWanted(container="c1", public_key=answering.reader.public)
    answers = secret_answers(bus, answering.secrets, region=region)
    async with answers.running(), agent_of(server_url, "n1") as first, agent_of(server_url, "n2") as second:
        await bus.flush()
        with pytest.raises(BusTimeout):
            await first.request(
                subjects.secrets(region, "n1"), SecretsWanted(container="c1", public_key=bytes(32)), 0.2
            )
        answer = await first.request(subjects.secrets(region, "n1"), wanted, 10.0)
        refused = await second.request(subjects.secrets(region, "n2"), wanted, 10.0)

    assert answering.reader.open(answer.sealed, "c1")
    assert refused.reason == "not_bound"
