"""A gateway's part in secrets: agents are answered, and which key is used is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilotlight_core.bus import Bus, bus_users, connect
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.host.foundations import WrongFoundation
from pilotlight_core.host.sealed_boxes import BoxReader
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import SecretsWanted
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.gateway_secrets import GatewaySecrets
from pilotlight_gateway.secrets.secret_service import set_secret
from pilotlight_gateway.settings import ServeSettings
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.nodes import binding
from tests.builders.specs import function_spec, version_record
from tests.gateway.secrets.makers import AT, VALUE


class AllShards:
    """This gateway is the home of all functions."""

    def mine(self, shard: int, at: float) -> int | None:
        return 1


@dataclass(kw_only=True)
class Known:
    """What a gateway knows that hears of no node."""

    bindings: MemoryBindings
    fleet: FleetView = field(default_factory=FleetView)
    table: AllShards = field(default_factory=AllShards)


def made(bus: Bus, folder: Path, **settings: str) -> GatewaySecrets:
    """Of a gateway; `ver_1` of a tenant is bound as `c1` on `n1`."""
    registry, bindings = MemoryRegistry(), MemoryBindings()
    spec = function_spec("f", secrets={"TOKEN": "token"})
    registry.versions["ver_1"] = version_record(spec, id="ver_1", tenant="acme")
    bindings.bind(binding("c1", "ver_1", node="n1", tenant="acme"))
    known = Known(bindings=bindings)
    return GatewaySecrets(ServeSettings(state_dir=folder, **settings), bus, registry, known)  # type: ignore[arg-type]


async def test_a_value_that_is_set_reaches_the_node(bus: Bus, server_url: str, tmp_path: Path) -> None:
    """By the key below the state folder, which the platform takes over by name here: others' tests have left one."""
    region, reader = f"r{token(8)}", BoxReader()
    own = made(bus, tmp_path, region=region, adopt="secrets_key")
    inbox = bus_users.agent("n1").inbox
    async with own.running(), connect(server_url, name="n1", inbox=inbox, makes_streams=False) as agent:
        await bus.flush()
        await set_secret(own.vault, "acme", "token", VALUE, by="k1", at=AT)
        wanted = SecretsWanted(container="c1", public_key=reader.public)
        answer = await agent.request(subjects.secrets(region, "n1"), wanted, 10.0)

    assert VALUE.encode() in reader.open(answer.sealed, "c1")
    assert (await own.store.platform_key()).startswith("file:")


async def test_a_key_that_is_none_ends_the_start(bus: Bus, tmp_path: Path) -> None:
    """With the flag's name; one that is adopted has to be there."""
    with pytest.raises(WrongFoundation, match="--secrets-key: 'vault://x' is no key"):
        made(bus, tmp_path, secrets_key="vault://x")
    (tmp_path / "key").write_text("none")
    wrong = made(bus, tmp_path, secrets_key=f"file://{tmp_path}/key", adopt="secrets_key")
    with pytest.raises(WrongFoundation, match="cannot take over from another"):
        async with wrong.running():
            pass


async def test_a_key_that_takes_over_does_so_at_the_start(bus: Bus, tmp_path: Path) -> None:
    """What the former one has sealed opens with the new one alone from then on."""
    own = made(bus, tmp_path, adopt="secrets_key")
    async with own.running():
        record = await set_secret(own.vault, "moving", "token", VALUE, by="k1", at=AT)
    old, new = f"file://{tmp_path}/keys/secrets_aes256", f"file://{tmp_path}/new"
    async with made(bus, tmp_path, secrets_key=new, former_secrets_key=old).running():
        pass
    later = made(bus, tmp_path, secrets_key=new)
    assert await later.vault.open_all("moving", {"token": record}) == {"token": VALUE}
    with pytest.raises(WrongFoundation, match="--former-secrets-key: 'x'"):
        made(bus, tmp_path, former_secrets_key="x")
