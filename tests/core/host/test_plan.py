"""The processes of a platform, as `up` is asked for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.host.config import BadSetting, parse
from pilotlight_core.host.plan import UpSettings, client_file, plan


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
        part.name: part for part in plan(settings, ports=[(1, 3), (4, 5)][: 1 + settings.extra_gateways], nats_port=2)
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
