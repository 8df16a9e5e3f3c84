"""The settings of `up`, and the processes that follow from them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from pilotlight_core.bus import bus_users
from pilotlight_core.bus.lease_cleanup import end_gateway_lease
from pilotlight_core.host import config
from pilotlight_core.model.api.pools.pool_agent_api import MOST_POOL_AGENTS, POOL_AGENT_NODE, AgentLaunch
from pilotlight_supervisor.embedded_bus import (
    EmbeddedError,
    cluster,
    find_nats_server,
    folder_of,
    user_url,
    wait_listening,
    write_config,
)
from pilotlight_supervisor.supervisor import ManagedProcess

NATS_WITHIN_S = 15.0
NATS_SERVERS = (1, 3)
"""Two would stop when one of them fails: storing needs more than half."""

WITHHELD = ("AWS_", "PILOTLIGHT_OTLP_")
"""Variables of an operator that agents do not get: credentials for a store, and for a collector of traces."""


class UpSettings(msgspec.Struct, frozen=True, kw_only=True):
    state_dir: Annotated[Path, msgspec.Meta(description="where this machine keeps everything")] = Path(".pilotlight")
    host: Annotated[str, msgspec.Meta(description="address of the HTTP API")] = "127.0.0.1"
    port: Annotated[config.Port, msgspec.Meta(description="port of the HTTP API; 0: any")] = 8470
    grpc_port: Annotated[
        config.Port,
        msgspec.Meta(
            description="port of the first gateway for the Open Inference Protocol over gRPC, at --host; needs the "
            "extra pilotlight[grpc]; 0: it is not served"
        ),
    ] = 0
    gateway_metrics_port: Annotated[
        config.Port, msgspec.Meta(description="port of the first gateway's /metrics, on loopback; 0: any")
    ] = 0
    metrics_port: Annotated[
        config.Port,
        msgspec.Meta(
            description="first port of the other processes' /metrics, on loopback: of the duties, the controller and "
            "each agent, one after the other; 0: any"
        ),
    ] = 0
    nats_port: Annotated[config.Port, msgspec.Meta(description="port of the embedded nats-server; 0: any")] = 0
    nats_servers: Annotated[int, msgspec.Meta(description="1, or 3: a cluster that survives one of them")] = 1
    region: Annotated[config.SettingName, msgspec.Meta(description="the region")] = "local"
    zone: Annotated[config.SettingName, msgspec.Meta(description="the zone")] = "local-a"
    agent: Annotated[bool, msgspec.Meta(description="run an agent on this machine")] = True
    extra_agents: Annotated[
        config.SettingCount, msgspec.Meta(description="further agents, as if nodes of their own")
    ] = 0
    extra_gateways: Annotated[
        config.SettingCount, msgspec.Meta(description="further gateways, on ports of their own")
    ] = 0
    dashboard: Annotated[bool, msgspec.Meta(description="run the dashboard")] = True
    dashboard_port: Annotated[
        config.Port, msgspec.Meta(description="port of the dashboard; 0: ten above --port, or any if that is in use")
    ] = 0
    pool_agents: Annotated[
        int,
        msgspec.Meta(
            ge=0, le=MOST_POOL_AGENTS, description="agents that pools of nodes may start here at a time; 0: none"
        ),
    ] = 0
    cpu_slots: Annotated[
        config.SettingCount, msgspec.Meta(description="CPU slots of each agent; 0: the machine's cores")
    ] = 0
    blanks: Annotated[config.SettingCount, msgspec.Meta(description="blanks that each agent keeps")] = 2
    sandbox: Annotated[str, msgspec.Meta(description="bubblewrap, or process (no isolation: one tenant only)")] = (
        "bubblewrap"
    )
    package_index: Annotated[
        str, msgspec.Meta(description="URL of the package index of which agents build requirements=; empty: none")
    ] = ""
    package_hosts: Annotated[
        str, msgspec.Meta(description="further hosts at which that index has its files, comma-separated")
    ] = ""
    package_ca_file: Annotated[str, msgspec.Meta(description="PEM: the authorities of the index's certificate")] = ""
    base: Annotated[
        tuple[str, ...], msgspec.Meta(description="NAME=PATH, base environments of each agent; may be repeated")
    ] = ()
    fake_gpus: Annotated[
        str, msgspec.Meta(description="GPUs of each agent that exist in software only, such as 2xH100:mig,1xT4")
    ] = ""
    notice_dir: Annotated[
        str,
        msgspec.Meta(
            description="folder in which a file NODE.json says that a node is taken away, for drills: the --notices of "
            "each agent; empty: none"
        ),
    ] = ""
    blob_url: Annotated[str, msgspec.Meta(description="file:///… or s3://bucket/prefix; empty: below --state-dir")] = ""
    encrypt_blobs: Annotated[
        bool, msgspec.Meta(description="seal what is put into the blob store from now on, by a key of its tenant")
    ] = False
    ledger_url: Annotated[
        str,
        msgspec.Meta(description="postgresql://… of the ledger, which must be there; empty: SQLite below --state-dir"),
    ] = ""
    webhook_allow: Annotated[
        str,
        msgspec.Meta(description="addresses and networks that webhooks may reach though not public; commas between"),
    ] = ""
    otlp_endpoint: Annotated[
        str,
        msgspec.Meta(
            description="collector of traces (OTLP over HTTP), such as http://127.0.0.1:4318, with the headers of "
            "PILOTLIGHT_OTLP_HEADERS; empty: traces go nowhere"
        ),
    ] = ""
    trace_ratio: Annotated[
        float,
        msgspec.Meta(ge=0, le=1, description="the part of all calls that is traced though nobody asked"),
    ] = 0.01
    access_log: Annotated[
        str,
        msgspec.Meta(
            pattern="^(off|errors|all)$",
            description="a line in the log for each request (all), for those that failed (errors), or for none (off)",
        ),
    ] = "errors"
    client_file: Annotated[
        str, msgspec.Meta(description="where the first admin key is written; empty: where the SDK looks")
    ] = ""
    tls_cert: Annotated[str, msgspec.Meta(description="PEM: the certificate of the HTTP API; empty: http")] = ""
    tls_key: Annotated[str, msgspec.Meta(description="PEM: its key; both are read again when they change")] = ""
    ca_file: Annotated[
        str, msgspec.Meta(description="PEM: the authority of that certificate, which the first client's file names")
    ] = ""
    issuer_ca_file: Annotated[
        str, msgspec.Meta(description="PEM: authorities that certificates of issuers of tokens may be of too")
    ] = ""
    json_ready: Annotated[str, msgspec.Meta(description="file to write when ready: url, api_key_file, pids")] = ""

    def __post_init__(self) -> None:
        if self.sandbox not in config.SANDBOXES:
            raise ValueError(f"expected one of {', '.join(config.SANDBOXES)} - at `$.sandbox`")
        if self.nats_servers not in NATS_SERVERS:
            raise ValueError("expected 1 or 3 - at `$.nats_servers`")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError("expected a certificate and its key, or neither - at `$.tls_cert`")

    def url_of(self, port: int) -> str:
        """Of a gateway."""
        return f"{'https' if self.tls_cert else 'http'}://{self.host}:{port}"

    @property
    def tls_flags(self) -> tuple[str, ...]:
        """Of each gateway."""
        given = {
            "--tls-cert": self.tls_cert, "--tls-key": self.tls_key, "--ca-file": self.ca_file,
            "--issuer-ca-file": self.issuer_ca_file,
        }  # fmt: skip
        return tuple(f"{flag}={value}" for flag, value in given.items() if value)


class GatewayPorts(NamedTuple):
    """The ports of one gateway. The last two are on loopback, whatever the address of the first."""

    public: int
    internal: int
    metrics: int


def measured(settings: UpSettings) -> tuple[str, ...]:
    """The processes beside gateways that serve metrics, in the order of their ports."""
    agents = (_numbered("agent", number) for number in _agents(settings))
    return "duties", "controller", *agents, *(("dashboard",) if settings.dashboard else ())


def plan(
    settings: UpSettings,
    *,
    ports: Sequence[GatewayPorts],
    metrics: Mapping[str, int],
    nats_ports: Sequence[int],
    dashboard_port: int = 0,
) -> tuple[ManagedProcess, ...]:
    """The processes of a platform, in the order of their display.

    Args:
        ports: of each gateway.
        metrics: port of each process of `measured`.
        nats_ports: client port of each nats-server.
        dashboard_port: 0: there is no dashboard.
    """
    state = settings.state_dir.resolve()
    common = ("--state-dir", str(state), "--region", settings.region, "--zone", settings.zone)
    nats = state / "nats"
    nodes = [*(_numbered("local", number) for number in _agents(settings)), *pool_nodes(settings)]

    # Addresses have passwords, and every user can read command lines.
    def env(user: str) -> Mapping[str, str]:
        return {"PILOTLIGHT_NATS_URL": user_url(nats, nats_ports, user)}

    ledger = {"PILOTLIGHT_LEDGER_URL": settings.ledger_url} if settings.ledger_url else {}

    dashboard = settings.url_of(dashboard_port) if dashboard_port else ""
    blob_url = settings.blob_url or f"file://{state / 'blobs'}"
    return (
        *_bus(nats, nats_ports, nodes),
        *(
            _gateway(settings, number, own, common, {**env(bus_users.GATEWAY), **ledger}, blob_url, dashboard)
            for number, own in enumerate(ports, 1)
        ),
        ManagedProcess(
            name="controller", rank=1, stop_within_s=5.0, env=env(bus_users.CONTROLLER),
            command=_python(
                "pilotlight_autoscaler", *common, "--name", "controller", "--metrics-port", str(metrics["controller"])
            ),
        ),
        # It ends after the agents, so that their last usage gets into the ledger.
        ManagedProcess(
            name="duties", rank=1, stop_within_s=5.0, env={**env(bus_users.DUTIES), **ledger},
            command=_python(
                "pilotlight_gateway.duties", *common, "--name", "duties", "--metrics-port", str(metrics["duties"]),
                "--blob-url", blob_url, *_sealing(settings), *_webhooks(settings), *_collector(settings),
            ),
        ),
        *(
            _agent(settings, number, metrics, common, env(bus_users.agent(node).name))
            for number, node in zip(_agents(settings), nodes, strict=False)
        ),
        *([_dashboard(settings, ports, dashboard_port, metrics["dashboard"])] if dashboard_port else []),
    )  # fmt: skip


def _dashboard(settings: UpSettings, ports: Sequence[GatewayPorts], port: int, metrics: int) -> ManagedProcess:
    """It asks gateways over HTTP with the sessions of who looks: it has no user on the bus, and no secret."""
    given = {
        "--dashboard-tls-cert": settings.tls_cert, "--dashboard-tls-key": settings.tls_key,
        "--ca-file": settings.ca_file,
    }  # fmt: skip
    gateways = ",".join(settings.url_of(own.public) for own in ports)
    command = _python(
        "pilotlight_gateway.dashboard", "--dashboard-host", settings.host, "--dashboard-port", str(port),
        "--gateways", gateways, "--metrics-port", str(metrics),
        *(f"{flag}={value}" for flag, value in given.items() if value),
    )  # fmt: skip
    return ManagedProcess(
        name="dashboard", rank=4, stop_within_s=3.0, withheld=("AWS_", "PILOTLIGHT_"), command=command
    )


def pool_nodes(settings: UpSettings) -> list[str]:
    """The nodes that pools may start here, each of which has a user on the bus."""
    return [POOL_AGENT_NODE.format(number) for number in range(1, settings.pool_agents + 1)]


def pool_agent(settings: UpSettings, launch: AgentLaunch, nats_ports: Sequence[int]) -> ManagedProcess:
    """The process of an agent that a pool starts.

    Raises:
        ValueError: it has no user on the bus.
    """
    if launch.node not in pool_nodes(settings):
        raise ValueError(f"{launch.node} is none of the nodes that pools may start here")
    state = settings.state_dir.resolve()
    command = _python(
        "pilotlight_runtime", "--state-dir", str(state), "--region", settings.region, "--zone", launch.zone,
        "--name", launch.node, "--pool", launch.pool, "--provider-id", launch.launch,
        "--spot" if launch.spot else "--no-spot",
        *_agent_flags(settings, launch.node, launch.cpu_slots, launch.fake_gpus),
    )  # fmt: skip
    address = user_url(state / "nats", nats_ports, bus_users.agent(launch.node).name)
    env = {"PILOTLIGHT_NATS_URL": address, **_index(settings)}
    return ManagedProcess(name=launch.node, rank=2, stop_within_s=10.0, env=env, withheld=WITHHELD, command=command)


def _agent_flags(settings: UpSettings, node: str, cpu_slots: int, fake_gpus: str) -> tuple[str, ...]:
    """What agents of this machine have in common."""
    fake = ("--fake-gpus", fake_gpus) if fake_gpus else ()
    bases = [word for base in settings.base for word in ("--base", base)]
    notices = ("--notices", f"file:{Path(settings.notice_dir).resolve() / node}.json") if settings.notice_dir else ()
    return (
        "--node", node, "--cpu-slots", str(cpu_slots), "--blanks", str(settings.blanks), "--sandbox", settings.sandbox,
        "--blob-url", settings.blob_url or f"file://{settings.state_dir.resolve() / 'blobs'}",
        "--agents-here", str(len(_agents(settings)) + settings.pool_agents), *fake, *bases, *notices,
    )  # fmt: skip


def _bus(folder: Path, ports: Sequence[int], nodes: Sequence[str]) -> list[ManagedProcess]:
    members = cluster(folder, ports) if len(ports) > 1 else (None,)
    return [
        ManagedProcess(
            name=_numbered("nats", number + 1), rank=0, stop_within_s=5.0,
            ready=partial(_nats_ready, folder_of(folder, number), ports[number]),
            command=(str(find_nats_server()), "-c", str(write_config(folder, ports[0], nodes, member))),
        )
        for number, member in enumerate(members)
    ]  # fmt: skip


async def _nats_ready(folder: Path, port: int) -> None:
    if not await wait_listening(folder, port, NATS_WITHIN_S):
        raise EmbeddedError(f"nats-server does not answer on port {port}.")


def _gateway(
    settings: UpSettings,
    number: int,
    ports: GatewayPorts,
    common: Sequence[str],
    env: Mapping[str, str],
    blob_url: str,
    dashboard_url: str,
) -> ManagedProcess:
    name = gateway_name(number)
    flags = (
        "--name", name, "--host", settings.host, "--port", str(ports.public),
        "--internal-port", str(ports.internal), "--metrics-port", str(ports.metrics),
        "--blob-url", blob_url, *_sealing(settings), "--replicas", str(settings.nats_servers), *_webhooks(settings),
        "--trace-ratio", str(settings.trace_ratio), "--access-log", settings.access_log, *settings.tls_flags,
    )  # fmt: skip
    first = ("--bootstrap-client-file", settings.client_file, *_grpc(settings)) if number == 1 else ()
    pages = ("--dashboard-url", dashboard_url) if dashboard_url else ()
    command = _python("pilotlight_gateway", *common, *flags, *pages, *first)
    clean_up = partial(end_gateway_lease, env["PILOTLIGHT_NATS_URL"], name)
    return ManagedProcess(name=name, rank=3, stop_within_s=30.0, env=env, command=command, clean_up=clean_up)


def _sealing(settings: UpSettings) -> tuple[str, ...]:
    return ("--encrypt-blobs",) if settings.encrypt_blobs else ()


def _grpc(settings: UpSettings) -> tuple[str, ...]:
    return ("--grpc-host", settings.host, "--grpc-port", str(settings.grpc_port)) if settings.grpc_port else ()


def _webhooks(settings: UpSettings) -> tuple[str, ...]:
    return ("--webhook-allow", settings.webhook_allow) if settings.webhook_allow else ()


def _collector(settings: UpSettings) -> tuple[str, ...]:
    return ("--otlp-endpoint", settings.otlp_endpoint) if settings.otlp_endpoint else ()


def gateway_name(number: int) -> str:
    """Of the first, second and so on."""
    return _numbered("gateway", number)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _agents(settings: UpSettings) -> range:
    return range(1, 1 + (1 if settings.agent else 0) + settings.extra_agents)


def _agent(
    settings: UpSettings,
    number: int,
    metrics: Mapping[str, int],
    common: Sequence[str],
    env: Mapping[str, str],
) -> ManagedProcess:
    name, node = _numbered("agent", number), _numbered("local", number)
    command = _python(
        "pilotlight_runtime", *common, "--name", name, "--metrics-port", str(metrics[name]),
        *_agent_flags(settings, node, settings.cpu_slots, settings.fake_gpus),
    )  # fmt: skip
    env = {**env, **_index(settings)}
    # A node reads the files of its containers over links: it needs no credentials of the store.
    return ManagedProcess(name=name, rank=2, stop_within_s=10.0, env=env, withheld=WITHHELD, command=command)


def _index(settings: UpSettings) -> Mapping[str, str]:
    """Where packages come from, in variables: every user of the host can read a command line."""
    names = ("package_index", "package_hosts", "package_ca_file")
    return {f"{config.PREFIX}{name.upper()}": value for name in names if (value := getattr(settings, name))}


def _python(module: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", module, *arguments)
