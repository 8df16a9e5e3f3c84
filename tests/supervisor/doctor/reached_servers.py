"""Servers that a host may reach: an API, and a bus."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec

from pilotlight_core.host.certificates.server_context import read_context
from pilotlight_supervisor.embedded_bus import find_nats_server, with_parent
from tests.builders.certificates import a_server, tls_files
from tests.waiting import wait_until

TLS = Path(__file__).parents[3] / "infra" / "nats-tls.conf"


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing."""


@contextmanager
def serving(folder: Path | None = None, name: str = "server") -> Iterator[int]:
    """An HTTP server, with the certificate of that name in `folder`; its port."""
    server = HTTPServer(("127.0.0.1", 0), Answers)
    if folder is not None:
        files = a_server(folder, name, host="" if name == "server" else name)
        context, _ = read_context(tls_files(files), datetime.now(UTC))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def a_bus(folder: Path, *, secure: bool) -> Iterator[int]:
    """A nats-server with users and JetStream, and with TLS by infra/nats-tls.conf."""
    ports = folder / "ports"
    ports.mkdir()
    config = folder / "nats.conf"
    text = (
        f'listen: "127.0.0.1:-1"\nports_file_dir: "{ports}"\nmax_payload: 4MB\n'
        f'jetstream {{ store_dir: "{folder}/js" }}\n'
        'authorization { users: [ { user: "me", password: "secret" } ] }\n'
    )
    (folder / TLS.name).write_text(TLS.read_text())
    config.write_text(text + (f"include ./{TLS.name}\n" if secure else ""))
    env = {**os.environ}
    if secure:
        files = a_server(folder)
        env |= {"PILOTLIGHT_BUS_CERT": str(files.certificate), "PILOTLIGHT_BUS_KEY": str(files.key)}
    process = subprocess.Popen(with_parent(find_nats_server(), "-c", config, "-l", folder / "nats.log"), env=env)
    try:
        wait_until(lambda: any(file.stat().st_size for file in ports.glob("*.ports")), "its port")
        (found,) = ports.glob("*.ports")
        yield int(msgspec.json.decode(found.read_bytes())["nats"][0].rpartition(":")[2])
    finally:
        process.terminate()
        process.wait(10)
