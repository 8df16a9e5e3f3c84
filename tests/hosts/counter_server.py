"""A server outside of the platform that writes down what functions tell it.

`python -m tests.hosts.counter_server ADDRESS FILE`. Each POST is a line, which is in the file before it is answered.
"""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class CounterHandler(BaseHTTPRequestHandler):
    """Takes one line."""

    file: Path
    writing = threading.Lock()

    def do_POST(self) -> None:
        line = self.rfile.read(int(self.headers["Content-Length"]))
        with self.writing, self.file.open("ab") as file:
            file.write(line + b"\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: the file says it."""


def main() -> None:
    CounterHandler.file = Path(sys.argv[2])
    ThreadingHTTPServer((sys.argv[1], 80), CounterHandler).serve_forever()


if __name__ == "__main__":
    main()
