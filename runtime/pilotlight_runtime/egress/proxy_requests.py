"""What a client asks a proxy for: `CONNECT host:port`, or a request in clear for `http://host/path`. Pure.

A request in clear is rewritten for its server: in the form for servers, without what is for the proxy, and with
`Connection: close`. One is passed on of each connection, its body by its length, so that nothing can stand behind it
that another reader would take for a second request to another host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_HEAD = 8 * 1024
"""Bytes of a request without its body."""
MOST_BODY = 2**40
END = b"\r\n\r\n"
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,16}) ([\x21-\x7e]{1,4096}) (HTTP/1\.[01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\x20-\x7e\x80-\xff\t]*)")
"""Blanks around the value are cut off afterwards: an expression with all three parts takes the cube of a line's length
to refuse it."""
_URL = re.compile(rb"http://([^/?#@\\]+)([/?][^#]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
FOR_PROXIES = frozenset({
    *(b"connection", b"proxy-connection", b"proxy-authorization", b"proxy-authenticate", b"keep-alive", b"te"),
    *(b"trailer", b"upgrade"),
})  # fmt: skip
"""Headers that are not passed on."""


class RefusedRequest(Exception):
    """The proxy does not do it; `status` is HTTP's, and the reason is for the client."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class ProxyRequest:
    """A host and a port, as the client wrote them, but for capital letters."""

    host: str
    port: int
    forwarded: bytes = b""
    """The head of a request in clear, for the server; empty: the client asks for a tunnel (CONNECT)."""
    body_bytes: int = 0
    """Of a request in clear."""

    @property
    def is_tunnel(self) -> bool:
        return not self.forwarded


def parse_request(head: bytes) -> ProxyRequest:
    """A request from its head, which ends with an empty line.

    Raises:
        RefusedRequest: it is none, or one that is not passed on.
    """
    first, *rest = head.removesuffix(END).split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise RefusedRequest(400, "this is no request to a proxy")
    method, target, version = line.groups()
    if method == b"CONNECT":
        host, port = _authority(target)
        if port is None:
            raise RefusedRequest(400, "CONNECT names a host and a port")
        return ProxyRequest(host, port)
    return _in_clear(method, target, version, [_header(each) for each in rest])


def refusal(refused: RefusedRequest) -> bytes:
    """The answer; its reason stands in the first line too, which is all that most clients show."""
    text = "".join(letter for letter in refused.reason if letter.isprintable() and letter.isascii())
    body = f"{text}\n".encode()
    return (
        f"HTTP/1.1 {refused.status} {text}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode() + body


def _in_clear(method: bytes, target: bytes, version: bytes, headers: list[tuple[bytes, bytes]]) -> ProxyRequest:
    url = _URL.fullmatch(target)
    if url is None:
        raise RefusedRequest(400, "this proxy takes CONNECT, and http:// requests without a user in the URL")
    host, port = _place(url[1])
    named = [value for name, value in headers if name.lower() == b"host"]
    if len(named) != 1 or _place(named[0]) != (host, port):
        raise RefusedRequest(400, "the Host header is not the host of the URL")
    kept = [(name, value) for name, value in headers if name.lower() not in FOR_PROXIES]
    path = url[2] or b"/"
    lines = [b"%s %s %s" % (method, path if path.startswith(b"/") else b"/" + path, version)]
    lines += [b"%s: %s" % header for header in kept]
    return ProxyRequest(host, port, b"\r\n".join((*lines, b"Connection: close")) + END, _body_bytes(kept))


def _body_bytes(headers: list[tuple[bytes, bytes]]) -> int:
    counts = [value for name, value in headers if name.lower() == b"content-length"]
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        raise RefusedRequest(411, "a request in clear must say its Content-Length")
    if not counts:
        return 0
    if len(counts) > 1 or not re.fullmatch(rb"[0-9]{1,13}", counts[0]) or int(counts[0]) > MOST_BODY:
        raise RefusedRequest(400, "the Content-Length cannot be read")
    return int(counts[0])


def _header(line: bytes) -> tuple[bytes, bytes]:
    found = _HEADER.fullmatch(line)
    if found is None:
        raise RefusedRequest(400, "a header cannot be read")
    return found[1], found[2].strip(b" \t")


def _place(text: bytes) -> tuple[str, int]:
    """Host and port of a request in clear."""
    host, port = _authority(text)
    return host, port or 80


def _authority(text: bytes) -> tuple[str, int | None]:
    """Host and port; None: no port is named."""
    found = _AUTHORITY.fullmatch(text.decode("latin-1"))
    if found is None or not found[1]:
        raise RefusedRequest(400, "the host cannot be read")
    port = int(found[2]) if found[2] else None
    if port is not None and not 0 < port < 65_536:
        raise RefusedRequest(400, "the port cannot be read")
    return found[1].lower(), port
