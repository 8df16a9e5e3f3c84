"""The settings of a gateway and of the duties."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from pilotlight_core.host.config import Port, Settings
from pilotlight_core.host.outbound.address_policy import Network, read_networks
from pilotlight_gateway.internal_address import check_internal
from pilotlight_gateway.limits.connections import ConnectionBounds
from pilotlight_gateway.supply.osv_file import OsvFile

Seconds = Annotated[float, Meta(ge=0, le=3600)]
Lifetime = Annotated[float, Meta(ge=60, le=31 * 86_400)]


class DutySettings(Settings, frozen=True, kw_only=True):
    """Settings of both."""

    price_file: Annotated[str, Meta(description="prices (TOML) over those of the standard price book")] = ""
    ledger_url: Annotated[str, Meta(description="postgresql://…; empty: SQLite below --state-dir")] = ""
    blob_url: Annotated[str, Meta(description="file:///… or s3://bucket/prefix; empty: below --state-dir")] = ""
    encrypt_blobs: Annotated[
        bool,
        Meta(
            description="seal what is put into the blob store from now on, by a key of its tenant under "
            "--secrets-key; what is there in clear stays readable, and duties seal it"
        ),
    ] = False
    secrets_key: Annotated[
        str,
        Meta(
            description="the key above those that seal tenants' secrets and blobs, one for all gateways and duties: "
            "file:///… or aws-kms://alias/NAME?region=…; empty: a file below --state-dir/keys"
        ),
    ] = ""
    former_secrets_key: Annotated[
        str,
        Meta(
            description="the key that sealed them before --secrets-key, by which is sealed anew at the start what it "
            "sealed: file:///… or aws-kms://…; empty: none"
        ),
    ] = ""

    osv_file: Annotated[
        str,
        Meta(
            description="known vulnerabilities, an export of OSV (PyPI/all.zip) that you renew; policies may look for "
            "them; empty: none are known"
        ),
    ] = ""
    webhook_allow: Annotated[
        str, Meta(description="addresses and networks that webhooks may reach though not public; commas between")
    ] = ""
    webhook_ca_file: Annotated[str, Meta(description="PEM: authorities that receivers' certificates may be of too")] = (
        ""
    )

    @property
    def known_vulnerabilities(self) -> OsvFile:
        return OsvFile(Path(self.osv_file).expanduser() if self.osv_file else None)

    @property
    def webhook_networks(self) -> tuple[Network, ...]:
        return read_networks(self.webhook_allow)

    @property
    def blobs(self) -> str:
        return self.blob_url or self.default_blob_url

    @property
    def prices(self) -> Path | None:
        return Path(self.price_file).expanduser() if self.price_file else None

    @property
    def database_url(self) -> str:
        return self.ledger_url or f"sqlite:///{self.ledger_path.resolve()}"


class DutyProcessSettings(DutySettings, frozen=True, kw_only=True):
    """`python -m pilotlight_gateway.duties --help` lists them."""

    otlp_endpoint: Annotated[
        str,
        Meta(
            pattern="^(https?://[!-~]{1,500})?$",
            description="collector of traces (OTLP over HTTP), such as http://127.0.0.1:4318; empty: traces go nowhere",
        ),
    ] = ""
    otlp_headers: Annotated[
        str,
        Meta(
            description="headers for it, name=value with commas between and values percent-encoded, such as its key; "
            "better as PILOTLIGHT_OTLP_HEADERS, which no list of processes shows"
        ),
    ] = ""


class ServeSettings(DutySettings, frozen=True, kw_only=True):
    """`python -m pilotlight_gateway --help` lists them."""

    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    port: Annotated[Port, Meta(description="port of the HTTP API")] = 8470
    tls_cert: Annotated[
        str,
        Meta(description="PEM: the certificate of the HTTP API and what is between it and its authority; empty: http"),
    ] = ""
    tls_key: Annotated[str, Meta(description="PEM: its key; both are read again when they change")] = ""
    tls_client_ca: Annotated[
        str,
        Meta(
            description="PEM: authorities whose client certificates are taken in place of a key, if their holder is "
            "mapped (pilotlight key create --certificate); empty: clients are not asked for one"
        ),
    ] = ""
    grpc_host: Annotated[str, Meta(description="address for gRPC: the Open Inference Protocol")] = "127.0.0.1"
    grpc_port: Annotated[
        Port,
        Meta(
            description="its port, with the certificate of --tls-cert; needs the extra pilotlight[grpc]; 0: it is not "
            "served"
        ),
    ] = 0
    public_url: Annotated[
        str,
        Meta(
            pattern="^(https?://[!-~]{1,190})?$",
            description="where clients reach this gateway, which answers of other gateways name to callers whose"
            " function's home it is; empty: the address that it listens on, if that is one",
        ),
    ] = ""
    hidden_home: Annotated[
        bool,
        Meta(
            description="answers of other gateways do not name it: where callers are not to know its address, and no "
            "load balancer learns from that header"
        ),
    ] = False
    dashboard_url: Annotated[
        str,
        Meta(
            pattern="^(https?://[!-~]{1,190})?$",
            description="where browsers reach the dashboard, for links into it; empty: links name none",
        ),
    ] = ""
    internal_host: Annotated[
        str, Meta(description="address for large bodies, which agents fetch and leave there; agents of other hosts too")
    ] = "127.0.0.1"
    internal_port: Annotated[Port, Meta(description="port for large bodies; 0: any")] = 0
    internal_url: Annotated[
        str, Meta(description="where agents reach that port, http://HOST:PORT or https://…; empty: where it listens")
    ] = ""
    internal_tls_cert: Annotated[
        str, Meta(description="PEM: the certificate of that port, which agents verify by their --ca-file; empty: http")
    ] = ""
    internal_tls_key: Annotated[str, Meta(description="PEM: its key; both are read again when they change")] = ""
    internal_plain: Annotated[
        bool,
        Meta(
            description="large bodies may leave this host in clear: nobody else reads or reaches the network to agents"
        ),
    ] = False
    issuer_ca_file: Annotated[
        str, Meta(description="PEM: authorities that certificates of issuers of tokens may be of too")
    ] = ""
    bootstrap_client_file: Annotated[str, Meta(description="write the first admin key here")] = ""
    bootstrap_once: Annotated[
        bool,
        Meta(description="make it only while the platform has no key: for a gateway whose --state-dir goes with it"),
    ] = False
    tiers_file: Annotated[str, Meta(description="tiers (TOML) over the standard ones")] = ""
    idempotency_seconds: Annotated[Lifetime, Meta(description="how long an Idempotency-Key is remembered")] = 86_400.0
    replicas: Annotated[int, Meta(ge=1, le=5, description="copies of every stream and bucket: 3 in a cluster")] = 1
    job_seconds: Annotated[Lifetime, Meta(description="how long jobs are kept after their end, at most")] = 7 * 86_400.0
    job_bytes: Annotated[
        int, Meta(ge=2**20, description="what one tenant may store of jobs, with inputs and results, over all gateways")
    ] = 2 * 2**30
    key_set: Annotated[
        str,
        Meta(
            description="file of the gateways' public keys that the operator has signed, if it is later than the "
            "platform's; empty: the platform's, if it has one"
        ),
    ] = ""
    adopt: Annotated[
        str,
        Meta(
            description="of manifest_key, blob_store, ledger, secrets_key: those that the platform takes from this "
            "gateway"
        ),
    ] = ""
    node_issuer: Annotated[
        str,
        Meta(
            description="file of the keys by which nodes may join, as 'python -m pilotlight_gateway.nodes.node_issuer' "
            "makes it; empty: none may"
        ),
    ] = ""
    node_bus_url: Annotated[
        str,
        Meta(
            pattern="^((nats|tls)://[^\\s@]+)?$",
            description="where nodes that join reach the bus, without credentials; empty: as this gateway does",
        ),
    ] = ""
    launch: Annotated[
        str, Meta(pattern="^[a-z0-9]{0,32}$", description="this life of the process, unique; set by its supervisor")
    ] = ""
    connections: Annotated[int, Meta(ge=8, le=1_000_000, description="connections of clients at a time")] = 10_000
    connections_per_address: Annotated[
        int, Meta(ge=1, le=1_000_000, description="of these, from one address (IPv6: one /64 network)")
    ] = 1_000
    unknown_connections_per_address: Annotated[
        int, Meta(ge=1, le=1_000_000, description="of these, over which no request with a valid key has come yet")
    ] = 100
    unknown_connection_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="how long a connection may live before a request with a valid key")
    ] = 30.0
    trusted_proxies: Annotated[
        str,
        Meta(
            description="addresses and networks of proxies, which may hold as many connections as there are, and whose "
            "X-Forwarded-Proto is believed; commas between"
        ),
    ] = "127.0.0.0/8, ::1"
    notice_seconds: Annotated[
        Seconds,
        Meta(
            description="how long calls are still taken after SIGTERM, while /readyz says 503 and answers end their "
            "connections, so that load balancers and clients go elsewhere before any call is refused"
        ),
    ] = 0.0
    drain_seconds: Annotated[Seconds, Meta(description="how long calls may finish after SIGTERM")] = 20.0
    trace_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="the part of all calls that is traced though nobody asked and nothing was wrong",
        ),
    ] = 0.01
    access_log: Annotated[
        str,
        Meta(
            pattern="^(off|errors|all)$",
            description="a line in the log for each request (all), for those that failed (errors), or for none (off)",
        ),
    ] = "errors"

    def __post_init__(self) -> None:
        for name in ("tls", "internal_tls"):
            if bool(getattr(self, f"{name}_cert")) != bool(getattr(self, f"{name}_key")):
                raise ValueError(f"expected a certificate and its key, or neither - at `$.{name}_cert`")
        if self.tls_client_ca and not self.tls_cert:
            raise ValueError("expected --tls-cert beside it - at `$.tls_client_ca`")
        check_internal(
            self.internal_host,
            self.internal_port,
            self.internal_url,
            plain=self.internal_plain,
            tls=bool(self.internal_tls_cert),
        )

    def url_for_clients(self, listening: str) -> str:
        """Where clients reach it, for answers of other gateways; "": it listens on all addresses (`listening`), and
        nobody has named one, or it is not to be named.
        """
        if self.hidden_home:
            return ""
        return self.public_url or ("" if self.host in ("", "0.0.0.0", "::") else listening)  # noqa: S104 - no binding

    def client_url(self, listening: str) -> str:
        """What the first client's file names: with TLS the address that is named, since the certificate is of it."""
        return self.public_url if self.tls_cert and self.public_url else listening

    @property
    def issuer(self) -> Path | None:
        return Path(self.node_issuer).expanduser() if self.node_issuer else None

    @property
    def connection_bounds(self) -> ConnectionBounds:
        return ConnectionBounds(
            of_all=self.connections,
            of_address=self.connections_per_address,
            unknown_of_address=self.unknown_connections_per_address,
            unknown_seconds=self.unknown_connection_seconds,
            exempt=read_networks(self.trusted_proxies, "trusted_proxies"),
        )

    @property
    def tiers(self) -> Path | None:
        return Path(self.tiers_file).expanduser() if self.tiers_file else None

    @property
    def client_file(self) -> Path | None:
        return Path(self.bootstrap_client_file).expanduser() if self.bootstrap_client_file else None
