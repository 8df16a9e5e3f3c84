"""A load balancer whose connections break: each passes on so many bytes of answers, to one server after the other."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle

PIECE = 4_096


@contextmanager
def breaking_proxy(servers: Sequence[int], most: int) -> Iterator[int]:
    """Yield the port of one on loopback, in front of these ports."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, servers, most), daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, servers: Sequence[int], most: int) -> None:
    with suppress(OSError):
        for port in cycle(servers):
            client, _ = listening.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for one, other, bound in ((client, server, 1 << 30), (server, client, most)):
                threading.Thread(target=_pass, args=(one, other, bound), daemon=True).start()


def _pass(source: socket.socket, sink: socket.socket, most: int) -> None:
    with suppress(OSError):
        while most > 0 and (data := source.recv(min(PIECE, most))):
            sink.sendall(data)
            most -= len(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
