"""`up` over two stub parts, for tests: `stub_up.py FOLDER PORT READY_FILE good|late|never|broken`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pilotlight_supervisor.readiness import ReadyFile, UpError
from pilotlight_supervisor.supervisor import ManagedProcess
from pilotlight_supervisor.up import locked, supervise

GATEWAY = """
import http.server, sys, time
port, mode = int(sys.argv[1]), sys.argv[2]
if mode == "broken":
    sys.exit("it fails on purpose")
began = time.monotonic()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        waits = mode == "never" or (mode == "late" and time.monotonic() - began < 0.3)
        self.send_response(503 if waits else 200)
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def main(folder: Path, port: str, ready_file: Path, mode: str) -> None:
    parts = (
        ManagedProcess(name="sleeper", rank=0, command=("/bin/sleep", "1000")),
        ManagedProcess(name="gateway", rank=1, command=(sys.executable, "-c", GATEWAY, port, mode)),
    )
    ready = ReadyFile(url=f"http://127.0.0.1:{port}", api_key_file="none", nats_url="none", state_dir=str(folder))
    with locked(folder):
        if mode == "never":
            print("locked", flush=True)
        try:
            asyncio.run(supervise(parts, folder / "logs", ready, ready_file))
        except UpError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4])
