"""The file of a joined node, and its renewal. With a real bus: `tests/gateway/nodes/test_node_admission.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from pilotlight_core.bus import Bus, BusTimeout
from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.host.config import AgentSettings
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import NodeRenewal, RenewNode
from pilotlight_runtime.node.node_credentials import (
    CredentialRenewal,
    NodeCredentials,
    read_credentials,
    renewal_due_in,
    trusted_file,
    with_credentials,
    write_credentials,
)

SEED = Nkey.generate(NkeyKind.USER).seed
HELD = NodeCredentials(
    node="n1", region="eu", zone="eu-1", spot=True, bus_url="nats://bus:4222", seed=SEED, renewed_at=0.0,
    expires_at=100.0,
)  # fmt: skip


@dataclass
class ScriptedBus:
    """Answers renewals as they were scripted."""

    answers: list[NodeRenewal | Exception]
    asked: list[tuple[str, str]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    async def request(self, subject: str, message: RenewNode, timeout: float) -> Any:
        self.asked.append((subject, message.key))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def use_key(self, key: Nkey) -> None:
        self.keys.append(key.public)


def renewal(path: Path, *answers: NodeRenewal | Exception) -> tuple[CredentialRenewal, ScriptedBus]:
    bus = ScriptedBus(list(answers))
    write_credentials(path, HELD)
    return CredentialRenewal(cast("Bus", bus), path, HELD, lambda: 50.0), bus


def test_credentials_are_their_owners(tmp_path: Path) -> None:
    """Written as a whole, over those before."""
    path = tmp_path / "deep" / "node.json"
    write_credentials(path, HELD)
    write_credentials(path, replace(HELD, zone="eu-2"))
    assert read_credentials(path) == replace(HELD, zone="eu-2")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["node.json"]


@pytest.mark.parametrize("content", [None, "", "{}"])
def test_what_is_none_is_said(tmp_path: Path, content: str | None) -> None:
    """With the command that makes them."""
    path = tmp_path / "node.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInput, match="pilotlight node join"):
        read_credentials(path)
    with pytest.raises(BadInput, match="Join anew"):
        replace(HELD, seed="SUA").key()


def test_credentials_that_others_may_have_read_are_nobodys(tmp_path: Path) -> None:
    """They are closed, or the node joins anew."""
    path = tmp_path / "node.json"
    write_credentials(path, HELD)
    path.chmod(0o644)
    with pytest.raises(BadInput, match=r"credentials: .* has mode 0644.*join anew"):
        read_credentials(path)


def test_an_agent_is_who_its_credentials_say(tmp_path: Path) -> None:
    """Whatever its flags are; without any it is who these say."""
    path = tmp_path / "node.json"
    write_credentials(path, HELD)
    given = AgentSettings(node="other", zone="elsewhere", credentials=str(path))
    settings, held = with_credentials(given, 99.9)
    assert (settings.node, settings.region, settings.zone, settings.spot) == ("n1", "eu", "eu-1", True)
    assert settings.nats_url == "nats://bus:4222"
    assert held == HELD
    assert with_credentials(AgentSettings(node="n2"), 0.0) == (AgentSettings(node="n2"), None)
    with pytest.raises(BadInput, match=r"has expired.*--node n1"):
        with_credentials(given, 100.0)


def test_an_agent_trusts_whom_its_token_named(tmp_path: Path) -> None:
    """If its operator names no other file."""
    path = tmp_path / "node.json"
    write_credentials(path, HELD)
    given = AgentSettings(credentials=str(path))
    assert with_credentials(given, 0.0)[0].trusted_keys == ""

    trusted_file(path).write_text("keys")

    assert with_credentials(given, 0.0)[0].trusted_keys == str(tmp_path / "node.trusted.pem")
    named = AgentSettings(credentials=str(path), trusted_keys="other.pem")
    assert with_credentials(named, 0.0)[0].trusted_keys == "other.pem"


@pytest.mark.parametrize(("at", "due"), [(0.0, 50.0), (49.0, 1.0), (50.0, 0.0), (99.0, 0.0), (200.0, 0.0)])
def test_half_of_a_life_is_left_to_renew_in(at: float, due: float) -> None:
    """Late is at once."""
    assert renewal_due_in(HELD, at) == due


async def test_a_renewed_node_has_a_new_key(tmp_path: Path) -> None:
    """It is in the file, and what the next connection is made with."""
    path = tmp_path / "node.json"
    renewing, bus = renewal(path, NodeRenewal(expires_at=150.0))
    assert await renewing.renew()
    now = read_credentials(path)
    ((subject, key),) = bus.asked
    assert subject == "pl.eu.node.n1.renew"
    assert (now.key().public, bus.keys) == (key, [key])
    assert (now.renewed_at, now.expires_at, now.next_seed) == (50.0, 150.0, "")
    assert now.seed != SEED


async def test_a_lost_answer_is_asked_for_with_the_same_key(tmp_path: Path) -> None:
    """The platform may have it already; until then the present key is connected with."""
    path = tmp_path / "node.json"
    renewing, bus = renewal(
        path, BusTimeout("lost"), NodeRenewal(reason="it was revoked"), NodeRenewal(expires_at=150.0)
    )
    assert not await renewing.renew()
    between = read_credentials(path)
    assert between.seed == SEED
    assert between.next_seed
    assert not await renewing.renew()
    assert bus.keys == []
    assert await renewing.renew()
    assert len({key for _, key in bus.asked}) == 1
    assert read_credentials(path).seed == between.next_seed
