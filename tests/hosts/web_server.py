"""A web server over TLS, as functions find it outside: `python -m tests.hosts.web_server ADDRESS CERTIFICATE KEY`."""

from __future__ import annotations

import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebHandler(BaseHTTPRequestHandler):
    """Greets with the name by which it was asked; `/to/HOST` sends there."""

    def do_GET(self) -> None:
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", f"https://{self.path.removeprefix('/to/')}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        text = f"hello from {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def main() -> None:
    address, certificate, key = sys.argv[1:]
    server = ThreadingHTTPServer((address, 443), WebHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
