"""TLS between two contexts, in memory."""

from __future__ import annotations

import ssl
from contextlib import suppress


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends (the client's, the server's) after a handshake; raises ssl.SSLError as either side would."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=name)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [here, there]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    there.write(b"x")  # with TLS 1.3 a server refuses a client's certificate after the client has ended its handshake
    with suppress(ssl.SSLWantReadError):
        here.read(1)
    return here, there


def serial_of(end: ssl.SSLObject) -> str:
    """The number of the certificate that the other end has shown."""
    found = end.getpeercert()
    assert found is not None
    return str(found["serialNumber"])
