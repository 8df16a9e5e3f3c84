"""The settings of the dashboard's process."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.host.config import Port


class DashboardSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`python -m pilotlight_gateway.dashboard --help` lists them."""

    dashboard_host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    dashboard_port: Annotated[Port, Meta(description="port of the dashboard; 0: any")] = 8480
    gateways: Annotated[
        str, Meta(min_length=1, description="URLs of gateways, or of what is in front of them; commas between")
    ] = "http://127.0.0.1:8470"
    dashboard_url: Annotated[
        str, Meta(description="address at which browsers reach it, which issuers send them back to; empty: on loopback")
    ] = ""
    issuer_ca_file: Annotated[str, Meta(description="PEM: authorities that certificates of issuers may be of too")] = ""
    ca_file: Annotated[str, Meta(description="PEM: authorities that certificates of gateways may be of too")] = ""
    dashboard_tls_cert: Annotated[
        str, Meta(description="PEM: the certificate of the dashboard; empty: http, for this machine or behind a proxy")
    ] = ""
    dashboard_tls_key: Annotated[str, Meta(description="PEM: its key; both are read again when they change")] = ""
    metrics_host: Annotated[str, Meta(description="address to serve /metrics on")] = "127.0.0.1"
    metrics_port: Annotated[Port, Meta(description="port of /metrics; 0: it is not served")] = 0
    dashboard_connections: Annotated[int, Meta(ge=8, le=100_000, description="connections of browsers at a time")] = (
        1_024
    )
    trusted_proxies: Annotated[
        str, Meta(description="addresses and networks of proxies, which may hold as many as there are; commas between")
    ] = "127.0.0.0/8, ::1"

    def __post_init__(self) -> None:
        if bool(self.dashboard_tls_cert) != bool(self.dashboard_tls_key):
            raise ValueError("expected a certificate and its key, or neither - at `$.dashboard_tls_cert`")

    @property
    def gateway_urls(self) -> list[str]:
        return [url.strip() for url in self.gateways.split(",") if url.strip()]
