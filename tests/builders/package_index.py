"""A package index (PEP 503) on loopback, which tests fill, and break."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.builders.wheels import Wheel

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class LocalIndex:
    """What it has, and what it was asked."""

    port: int = 0
    wheels: list[Wheel] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    """By file name, a digest to name in the place of the right one."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """By path, what answers instead."""
    asked: list[str] = field(default_factory=list)
    """Paths, with the method before."""
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/simple/"

    def page(self, name: str) -> bytes | None:
        """The page of a package; None: it has none."""
        found = [each for each in self.wheels if each.name.replace("_", "-").lower() == name]
        links = "".join(
            f'<a href="/files/{each.filename}#sha256={self.digests.get(each.filename, each.sha256)}">'
            f"{each.filename}</a>\n"
            for each in found
        )
        return f"<!DOCTYPE html><html><body>{links}</body></html>".encode() if found else None

    def file(self, name: str) -> bytes | None:
        return next((each.data for each in self.wheels if each.filename == name), None)


@contextmanager
def package_index(*wheels: Wheel) -> Iterator[LocalIndex]:
    """An index that serves until the block ends."""
    index = LocalIndex(wheels=list(wheels))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(f"{self.command} {self.path}")
            index.headers.append(dict(self.headers.items()))
            path = urlsplit(self.path).path
            if (answer := index.answers.get(path)) is not None:
                answer(self)
                return
            kind = "text/html"
            if path.startswith("/simple/"):
                data = index.page(path.removeprefix("/simple/").strip("/"))
            else:
                data, kind = index.file(path.removeprefix("/files/")), "application/octet-stream"
            if data is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            """It prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    index.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
