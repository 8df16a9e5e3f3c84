"""The process of the dashboard. It may stop at any time, and any number of them may run: none keeps anything."""

from __future__ import annotations

from pilotlight_core.lean_libraries import structlog  # isort: skip # before what would import it whole

import asyncio
import logging
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from pilotlight.client.login.issuer_client import IssuerClient
from pilotlight_core.host import telemetry
from pilotlight_core.host.certificates.server_context import ServerContext, TlsFiles
from pilotlight_core.host.config import load
from pilotlight_core.host.gc_tuning import freeze
from pilotlight_core.host.metrics.loop_watch import LoopWatch
from pilotlight_core.host.metrics.metrics_listener import serving_metrics
from pilotlight_core.host.metrics.process_metrics import ProcessMetrics
from pilotlight_core.host.open_files import allow_open_files
from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.dashboard.asset_files import AssetFiles
from pilotlight_gateway.dashboard.dashboard_app import DashboardApp
from pilotlight_gateway.dashboard.dashboard_counts import CountedApi, DashboardCounts
from pilotlight_gateway.dashboard.dashboard_settings import DashboardSettings
from pilotlight_gateway.dashboard.issuer_logins import IssuerLogins
from pilotlight_gateway.dashboard.login_rates import LoginRates
from pilotlight_gateway.dashboard.page_drawings import PageDrawings
from pilotlight_gateway.dashboard.page_parts.followed_streams import FollowedStreams
from pilotlight_gateway.dashboard.page_parts.gateway_client import AnswerCache, GatewayClient
from pilotlight_gateway.dashboard.page_parts.gateway_streams import GatewayStreams
from pilotlight_gateway.http.listening_socket import listen, url_of
from pilotlight_gateway.http.server import make_server
from pilotlight_gateway.http.tls_listener import HandshakeBounds, TlsListener
from pilotlight_gateway.limits.connections import ConnectionBook, ConnectionBounds

PER_ADDRESS = 256
FILES_BESIDE_CONNECTIONS = 128

log = structlog.get_logger(__name__)


async def serve(settings: DashboardSettings) -> None:
    """Run the dashboard until SIGTERM or SIGINT.

    Raises:
        BadInput: its certificate cannot be used. OSError: its address is in use.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    exempt = read_networks(settings.trusted_proxies, "trusted_proxies")
    room = max(8, allow_open_files() - FILES_BESIDE_CONNECTIONS)
    bounds = ConnectionBounds(of_all=min(room, settings.dashboard_connections), of_address=PER_ADDRESS, exempt=exempt)
    tls = _tls(settings)
    client = GatewayClient(settings.gateway_urls, ca_file=settings.ca_file)
    streams = GatewayStreams(settings.gateway_urls, ca_file=settings.ca_file)
    followed = FollowedStreams(streams)
    counts, watch = DashboardCounts(), LoopWatch(time.monotonic())
    counted = CountedApi(client, counts)
    issuers = IssuerLogins(counted, lambda: IssuerClient(settings.issuer_ca_file), settings.dashboard_url)
    app = DashboardApp(
        counted, PageDrawings(AnswerCache(counted, followed=followed)), AssetFiles(),
        counts=counts, logins=LoginRates(exempt=exempt), issuers=issuers,
    )  # fmt: skip
    shown = ProcessMetrics(app.collect, watch.collect)
    try:
        with listen(settings.dashboard_host, settings.dashboard_port) as listening:
            listener = TlsListener(tls, HandshakeBounds(exempt=exempt)) if tls is not None else None
            server = make_server(app, book=ConnectionBook(bounds), tls=listener, graceful_seconds=1)
            async with (
                serving_metrics(settings.metrics_host, settings.metrics_port, shown.render),
                asyncio.TaskGroup() as group,
                followed.running(),
                watch.running(),
            ):
                watching = group.create_task(tls.watch()) if tls is not None else None
                group.create_task(server.serve(sockets=[listening]))
                freeze()
                log.info("the dashboard serves", url=url_of(listening), gateways=settings.gateway_urls)
                await stop.wait()
                # 1. Take no more requests; streams end with their connections. 2. What is followed, and the metrics,
                # end with the block. 3. The clients close below.
                server.stop()
                if watching is not None:
                    watching.cancel()
    finally:
        await client.aclose()
        await streams.aclose()


def _tls(settings: DashboardSettings) -> ServerContext | None:
    if not settings.dashboard_tls_cert:
        return None
    files = TlsFiles(
        certificate=Path(settings.dashboard_tls_cert).expanduser(),
        key=Path(settings.dashboard_tls_key).expanduser(),
        client_authority=None,
        setting="--dashboard-tls",
    )
    return ServerContext(files, datetime.now(UTC))


def main() -> None:
    """Run the dashboard; exits with 0 after a signal, 1 if it cannot run."""
    settings = load(DashboardSettings, "the dashboard: pages over the gateways' API")
    telemetry.setup("dashboard")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # or it says each request
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings))
    except (BadInput, OSError) as error:
        text = error.detail if isinstance(error, BadInput) else str(error)
        log.error("the dashboard cannot run on", error=text)
        sys.exit(1)
