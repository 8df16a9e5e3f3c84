"""The processes of a platform, as `up` is asked for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.host.config import BadSetting, parse
from pilotlight_supervisor.platform_plan import UpSettings, client_file, plan


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], ["nats", "gateway", "controller", "duties", "agent"]),
        (["--no-agent"], ["nats", "gateway", "controller", "duties"]),
        (["--extra-gateways", "1"], ["nats", "gateway", "gateway-2", "controller", "duties", "agent"]),
        (["--extra-agents", "2"], ["nats", "gateway", "controller", "duties", "agent", "agent-2", "agent-3"]),
    ],
)
def test_the_plan_has_the_parts_that_were_asked_for(tmp_path: Path, flags: list[str], names: list[str]) -> None:
    """With addresses and folders passed on, nats first to start and last to end, the gateway last to start."""
    settings = parse(UpSettings, "", ["--state-dir", str(tmp_path), "--blanks", "3", *flags], {})

    parts = {
        part.name: part
        for part in plan(settings, ports=[(1, 3), (4, 5)][: 1 + settings.extra_gateways], nats_ports=[2])
    }

    assert list(parts) == names
    assert sorted(parts.values(), key=lambda part: part.rank)[0].name == "nats"
    assert sorted(parts.values(), key=lambda part: part.rank)[-1].name.startswith("gateway")
    users = {path.name: path.read_text().strip() for path in (tmp_path / "nats" / "users").iterdir()}
    assert {name for name, part in parts.items() if part.env} == set(names) - {"nats"}
    for name in set(names) - {"nats"}:
        user = "gateway" if name.startswith("gateway") else name.replace("agent", "agent-local")
        assert parts[name].env == {"PILOTLIGHT_NATS_URL": f"nats://{user}:{users[user]}@127.0.0.1:2"}
    assert not any(token in word for token in users.values() for part in parts.values() for word in part.command)
    if "agent" in parts:
        assert "--blanks 3" in " ".join(parts["agent"].command)
        assert f"file://{tmp_path}/blobs" in parts["agent"].command


def test_three_servers_are_one_bus(tmp_path: Path) -> None:
    """Each has its own folder and configuration, all start first, and every process has all addresses."""
    settings = parse(UpSettings, "", ["--state-dir", str(tmp_path), "--nats-servers", "3"], {})

    parts = {part.name: part for part in plan(settings, ports=[(1, 3)], nats_ports=[11, 12, 13])}

    assert [name for name, part in parts.items() if part.rank == 0] == ["nats", "nats-2", "nats-3"]
    for name, port in (("nats", 11), ("nats-2", 12), ("nats-3", 13)):
        config = Path(parts[name].command[-1])
        assert config == tmp_path / name / "nats.conf"
        assert f'listen: "127.0.0.1:{port}"' in config.read_text()
    assert "--replicas 3" in " ".join(parts["gateway"].command)
    addresses = parts["gateway"].env["PILOTLIGHT_NATS_URL"].split(",")
    assert [address.rpartition(":")[2] for address in addresses] == ["11", "12", "13"]
    assert len({address.rpartition(":")[0] for address in addresses}) == 1


def test_two_servers_are_worse_than_one() -> None:
    """What is stored needs more than half of them."""
    with pytest.raises(BadSetting, match="expected 1 or 3, got 2"):
        parse(UpSettings, "", ["--nats-servers", "2"], {})


def test_a_sandbox_must_be_known() -> None:
    """The weaker one must be asked for by name."""
    with pytest.raises(BadSetting, match="expected one of bubblewrap, process, got 'none'"):
        parse(UpSettings, "", ["--sandbox", "none"], {})


def test_the_client_file_is_where_the_sdk_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag, else $PILOTLIGHT_HOME, else the home folder."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    assert client_file(UpSettings()) == tmp_path / "client.json"
    assert client_file(UpSettings(client_file=f"{tmp_path}/x.json")) == tmp_path / "x.json"

    monkeypatch.delenv("PILOTLIGHT_HOME")
    assert client_file(UpSettings()) == Path.home() / ".pilotlight" / "client.json"
