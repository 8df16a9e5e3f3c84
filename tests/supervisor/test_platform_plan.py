"""The processes of a platform, as `up` is asked for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from pilotlight_core.host.config import BadSetting, parse
from pilotlight_core.model.api.pools.pool_agent_api import AgentLaunch
from pilotlight_supervisor.platform_plan import GatewayPorts, UpSettings, measured, plan, pool_agent

METRICS = {"duties": 21, "controller": 22, "agent": 23, "agent-2": 24, "agent-3": 25, "dashboard": 26}


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

    ports = [GatewayPorts(1, 3, 6), GatewayPorts(4, 5, 7)][: 1 + settings.extra_gateways]
    parts = {part.name: part for part in plan(settings, ports=ports, metrics=METRICS, nats_ports=[2])}

    assert list(parts) == names
    assert sorted(parts.values(), key=lambda part: part.rank)[0].name == "nats"
    assert sorted(parts.values(), key=lambda part: part.rank)[-1].name.startswith("gateway")
    users = {path.name: path.read_text().strip() for path in (tmp_path / "nats" / "users").iterdir()}
    assert {name for name, part in parts.items() if part.env} == set(names) - {"nats"}
    for name in set(names) - {"nats"}:
        user = "gateway" if name.startswith("gateway") else name.replace("agent", "agent-local")
        assert parts[name].env == {"PILOTLIGHT_NATS_URL": f"nats://{user}:{users[user]}@127.0.0.1:2"}
    assert not any(token in word for token in users.values() for part in parts.values() for word in part.command)
    for name, own in zip(("gateway", "gateway-2"), ports, strict=False):
        flags_of = " ".join(parts[name].command)
        assert f"--port {own.public} --internal-port {own.internal} --metrics-port {own.metrics}" in flags_of
    assert measured(settings) == tuple(name for name in METRICS if name in (*names, "dashboard"))
    for name in set(measured(settings)) - {"dashboard"}:
        assert f"--metrics-port {METRICS[name]}" in " ".join(parts[name].command)
    if "agent" in parts:
        assert "--blanks 3" in " ".join(parts["agent"].command)
        assert f"file://{tmp_path}/blobs" in parts["agent"].command


def test_the_dashboard_is_a_client_of_all_gateways_and_has_no_secret(tmp_path: Path) -> None:
    """Nothing of the supervisor's environment that is the platform's or a cloud's; it starts last and ends first."""
    flags = ["--state-dir", str(tmp_path), "--extra-gateways", "1", "--tls-cert", "a.pem", "--tls-key", "a.key"]
    settings = parse(UpSettings, "", [*flags, "--ca-file", "ca.pem"], {})

    ports = [GatewayPorts(1, 3, 6), GatewayPorts(4, 5, 7)]
    parts = {part.name: part for part in plan(settings, ports=ports, metrics=METRICS, nats_ports=[2], dashboard_port=9)}

    dashboard = parts["dashboard"]
    command = " ".join(dashboard.command)
    assert (dashboard.env, dashboard.withheld) == ({}, ("AWS_", "PILOTLIGHT_"))
    assert dashboard.rank > max(part.rank for name, part in parts.items() if name != "dashboard")
    assert "--metrics-port 26" in command
    assert "--dashboard-url https://127.0.0.1:9" in " ".join(parts["gateway-2"].command)
    assert "--dashboard-port 9 --gateways https://127.0.0.1:1,https://127.0.0.1:4" in command
    assert "--dashboard-tls-cert=a.pem --dashboard-tls-key=a.key --ca-file=ca.pem" in command


def test_gateways_have_the_certificate_that_up_was_given(tmp_path: Path) -> None:
    """And its authority, for the first client's file; other processes have nothing of it."""
    given = ["--tls-cert", "a.pem", "--tls-key", "a.key", "--ca-file", "ca.pem", "--issuer-ca-file", "idp.pem"]
    given += ["--extra-gateways", "1"]
    settings = parse(UpSettings, "", ["--state-dir", str(tmp_path), *given], {})

    ports = [GatewayPorts(1, 3, 6), GatewayPorts(4, 5, 7)]
    parts = {part.name: part for part in plan(settings, ports=ports, metrics=METRICS, nats_ports=[2])}

    flags = {"--tls-cert=a.pem", "--tls-key=a.key", "--ca-file=ca.pem", "--issuer-ca-file=idp.pem"}
    assert {name for name, part in parts.items() if flags <= set(part.command)} == {"gateway", "gateway-2"}
    assert settings.url_of(8470) == "https://127.0.0.1:8470"
    with pytest.raises(BadSetting, match=r"--tls-cert .*a certificate and its key, or neither"):
        parse(UpSettings, "", ["--tls-cert", "a.pem"], {})


def test_the_first_gateway_serves_grpc_where_it_is_told(tmp_path: Path) -> None:
    """At the address of the API; without a port nobody does."""
    flags = ["--state-dir", str(tmp_path), "--host", "0.0.0.0", "--extra-gateways", "1"]  # noqa: S104 - never bound
    for more, told in ([], set[str]()), (["--grpc-port", "8476"], {"gateway"}):
        settings = parse(UpSettings, "", [*flags, *more], {})
        ports = [GatewayPorts(1, 3, 6), GatewayPorts(4, 5, 7)]
        parts = {part.name: part for part in plan(settings, ports=ports, metrics=METRICS, nats_ports=[2])}
        serving = {name for name, part in parts.items() if "--grpc-port" in part.command}
        assert serving == told
        assert all("--grpc-host 0.0.0.0 --grpc-port 8476" in " ".join(parts[name].command) for name in serving)


def test_the_ledger_is_where_its_readers_and_its_writer_look(tmp_path: Path) -> None:
    """Gateways and duties; no command line has the password, and no other process has it at all."""
    url = "postgresql://pilotlight:secret@db/ledger"
    settings = parse(UpSettings, "", ["--state-dir", str(tmp_path), "--ledger-url", url], {})

    parts = {part.name: part for part in plan(settings, ports=[GatewayPorts(1, 3, 6)], metrics=METRICS, nats_ports=[2])}

    told = {name for name, part in parts.items() if part.env.get("PILOTLIGHT_LEDGER_URL") == url}
    assert told == {"gateway", "duties"}
    assert not any("secret" in word for part in parts.values() for word in part.command)


def test_agents_get_the_base_environments(tmp_path: Path) -> None:
    """All of them, each."""
    flags = ["--state-dir", str(tmp_path), "--extra-agents", "1", "--base", "a=/x", "--base", "b=/y"]
    settings = parse(UpSettings, "", flags, {})

    parts = {part.name: part for part in plan(settings, ports=[GatewayPorts(1, 3, 6)], metrics=METRICS, nats_ports=[2])}

    for name in ("agent", "agent-2"):
        assert parts[name].command[-4:] == ("--base", "a=/x", "--base", "b=/y")


def test_each_agent_has_a_file_of_notices_of_its_own(tmp_path: Path) -> None:
    """Named after its node; without a folder nobody is asked."""
    flags = ["--state-dir", str(tmp_path), "--extra-agents", "1"]
    for more, there in ([], False), (["--notice-dir", str(tmp_path)], True):
        settings = parse(UpSettings, "", [*flags, *more], {})
        made = plan(settings, ports=[GatewayPorts(1, 3, 6)], metrics=METRICS, nats_ports=[2])
        parts = {part.name: part for part in made}
        for name, node in ("agent", "local"), ("agent-2", "local-2"):
            assert ("--notices" in parts[name].command) is there
            assert (f"file:{tmp_path / node}.json" in parts[name].command) is there


def test_three_servers_are_one_bus(tmp_path: Path) -> None:
    """Each has its own folder and configuration, all start first, and every process has all addresses."""
    settings = parse(UpSettings, "", ["--state-dir", str(tmp_path), "--nats-servers", "3"], {})

    parts = {
        part.name: part
        for part in plan(settings, ports=[GatewayPorts(1, 3, 6)], metrics=METRICS, nats_ports=[11, 12, 13])
    }

    assert [name for name, part in parts.items() if part.rank == 0] == ["nats", "nats-2", "nats-3"]
    for name, port in (("nats", 11), ("nats-2", 12), ("nats-3", 13)):
        config = Path(parts[name].command[-1])
        assert config == tmp_path / name / "nats.conf"
        assert f'listen: "127.0.0.1:{port}"' in config.read_text()
    assert "--replicas 3" in " ".join(parts["gateway"].command)
    addresses = parts["gateway"].env["PILOTLIGHT_NATS_URL"].split(",")
    assert [address.rpartition(":")[2] for address in addresses] == ["11", "12", "13"]
    assert len({address.rpartition(":")[0] for address in addresses}) == 1


def test_who_webhooks_may_reach_is_passed_on(tmp_path: Path) -> None:
    """To the gateway, which checks a webhook's address, and to the duties, which send."""
    allowed = UpSettings(state_dir=tmp_path, webhook_allow="127.0.0.0/8")
    parts = {
        part.name: " ".join(part.command)
        for part in plan(allowed, ports=[GatewayPorts(1, 2, 0)], metrics=METRICS, nats_ports=[3])
    }
    told = {name for name, command in parts.items() if "--webhook-allow 127.0.0.0/8" in command}
    assert told == {"gateway", "duties"}
    plain = plan(UpSettings(state_dir=tmp_path), ports=[GatewayPorts(1, 2, 0)], metrics=METRICS, nats_ports=[3])
    assert not any("--webhook-allow" in part.command for part in plain)


def test_where_traces_go_and_what_is_logged_is_passed_on(tmp_path: Path) -> None:
    """To the duties, which export, and to gateways, which sample and log; agents get no variable of a collector's."""
    asked = UpSettings(
        state_dir=tmp_path, otlp_endpoint="http://127.0.0.1:4318", trace_ratio=0.5, access_log="all"
    )  # fmt: skip
    parts = {part.name: part for part in plan(asked, ports=[GatewayPorts(1, 2, 0)], metrics=METRICS, nats_ports=[3])}
    told = {name: " ".join(part.command) for name, part in parts.items()}
    assert {name for name in told if "--otlp-endpoint http://127.0.0.1:4318" in told[name]} == {"duties"}
    assert {name for name in told if "--trace-ratio 0.5 --access-log all" in told[name]} == {"gateway"}
    assert "PILOTLIGHT_OTLP_" in parts["agent"].withheld


def test_the_variable_of_the_host_reaches_every_gateway(tmp_path: Path) -> None:
    """`make up` with it listens for other machines too; what only the platform asks stays on this one."""
    settings = parse(UpSettings, "", ["--state-dir", str(tmp_path)], {"PILOTLIGHT_HOST": "0.0.0.0"})  # noqa: S104
    parts = plan(settings, ports=[GatewayPorts(1, 2, 3), GatewayPorts(4, 5, 6)], metrics=METRICS, nats_ports=[7])
    gateways = [" ".join(part.command) for part in parts if part.name.startswith("gateway")]
    assert len(gateways) == 2
    for command in gateways:
        assert "--host 0.0.0.0" in command


def test_two_servers_are_worse_than_one() -> None:
    """What is stored needs more than half of them."""
    with pytest.raises(BadSetting, match="expected 1 or 3, got 2"):
        parse(UpSettings, "", ["--nats-servers", "2"], {})


def test_a_sandbox_must_be_known() -> None:
    """The weaker one must be asked for by name."""
    with pytest.raises(BadSetting, match="expected one of bubblewrap, process, got 'none'"):
        parse(UpSettings, "", ["--sandbox", "none"], {})


def test_an_agent_of_a_pool_is_one_of_this_machine(tmp_path: Path) -> None:
    """It has a user of its own from the start, an even part of the host, and its pool's word."""
    given = ["--pool-agents", "2", "--sandbox", "process", "--notice-dir", str(tmp_path)]
    settings = parse(UpSettings, "", ["--state-dir", str(tmp_path), *given], {})
    parts = plan(settings, ports=[GatewayPorts(1, 3, 6)], metrics=METRICS, nats_ports=[2])
    own = next(part for part in parts if part.name == "agent")
    assert "--agents-here 3" in " ".join(own.command)

    launch = AgentLaunch(
        launch="x", pool="spare", node="local-pool-2", zone="a", spot=True, fake_gpus="1xT4", cpu_slots=3
    )
    part = pool_agent(settings, launch, [2])
    words = " ".join(part.command)
    for flags in (
        "--node local-pool-2", "--pool spare", "--provider-id x", "--zone a", "--spot", "--fake-gpus 1xT4",
        "--cpu-slots 3", "--agents-here 3", "--sandbox process", "local-pool-2.json",
    ):  # fmt: skip
        assert flags in words
    password = (tmp_path / "nats" / "users" / "agent-local-pool-2").read_text().strip()
    assert part.env["PILOTLIGHT_NATS_URL"] == f"nats://agent-local-pool-2:{password}@127.0.0.1:2"
    with pytest.raises(ValueError, match="none of the nodes"):
        pool_agent(settings, structs.replace(launch, node="local-pool-3"), [2])
