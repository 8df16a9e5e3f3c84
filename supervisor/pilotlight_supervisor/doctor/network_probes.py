"""Tries to reach another host step by step, as a process of the platform would, and says how far it came.

Each attempt runs in a thread that ends with the process, and is waited for as long as its caller likes: a resolver that
hangs holds nothing up.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from pilotlight_core.authorities import add_authorities, certificate_problem, trust_authorities
from pilotlight_core.bus.bus_tls import PlainBus, check_tls_offer
from pilotlight_core.model.errors import BadInput

PROBE_S = 5.0
LINE = 64 * 1024
"""The longest greeting of a bus: of a large cluster, it names all servers."""
PORTS = {"http": 80, "https": 443, "nats": 4222, "tls": 4222, "postgresql": 5432}


class ReachStep(StrEnum):
    """The steps to an answer, in their order."""

    NAME = "name"
    CONNECTION = "connection"
    TLS = "TLS"
    ANSWER = "answer"


class BusGreeting(msgspec.Struct, frozen=True, kw_only=True):
    """What of the first line of a nats-server counts here."""

    version: str = ""
    jetstream: bool = False
    auth_required: bool = False
    tls_required: bool = False
    max_payload: int = 0


@dataclass(kw_only=True)
class Reach:
    """How far an attempt has come. `problem` is what `step` failed with; "": it came to its end."""

    what: str
    """What is there, as people call it."""
    url: str
    """Without a password."""
    step: ReachStep = ReachStep.NAME
    problem: str = ""
    addresses: tuple[str, ...] = ()
    secure: bool = False
    expires_at: float | None = None
    """When its certificate ends."""
    names: tuple[str, ...] = ()
    """Those of its certificate."""
    status: int = 0
    date: str = ""
    asked_at: float = 0.0
    answered_at: float = 0.0
    greeting: BusGreeting | None = None

    @property
    def host(self) -> str:
        """ "": the address has none, or is none."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""


@dataclass
class Attempt:
    """One that is under way."""

    reach: Reach
    thread: threading.Thread = field(repr=False)
    deadline_at: float

    def wait(self) -> Reach:
        """How far it came by its deadline."""
        self.thread.join(max(0.0, self.deadline_at - time.monotonic()))
        if self.thread.is_alive():
            return Reach(**{**vars(self.reach), "problem": f"nothing came within {PROBE_S:g} s"})
        return self.reach


def begin_http(what: str, url: str, path: str, ca_file: str, *, only: bool) -> Attempt:
    """Ask for a path; `only`: the authorities in `ca_file`, if there are any, and no others."""
    return _begin(what, url, ca_file, lambda parts, reach: _ask(parts, path, reach, ca_file, only=only))


def begin_bus(url: str, ca_file: str) -> Attempt:
    """Read the greeting of a server of the bus, and begin TLS where it asks for it; nothing is said to it."""
    return _begin("bus", url, ca_file, lambda parts, reach: _greet(parts, reach, ca_file))


def begin_connection(what: str, url: str) -> Attempt:
    """Connect, and no more."""
    return _begin(what, url, "", lambda parts, reach: _connect(parts, reach).close())


def _begin(what: str, url: str, ca_file: str, attempt: Callable[[SplitResult, Reach], None]) -> Attempt:
    bare = without_password(url)
    reach = Reach(what=what, url=bare.partition("?")[0])

    def run() -> None:
        with _explained(reach, ca_file):
            attempt(urlsplit(bare), reach)

    thread = threading.Thread(target=run, daemon=True, name=f"doctor {what}")
    thread.start()
    return Attempt(reach, thread, time.monotonic() + PROBE_S)


def without_password(url: str) -> str:
    """An address without its user, whatever is in a password: up to the last `@`, as drivers read it."""
    return re.sub(r"\A([a-z][a-z0-9+.-]*://)?.*@", r"\1", url, flags=re.DOTALL | re.IGNORECASE)


@contextlib.contextmanager
def _explained(reach: Reach, ca_file: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        reach.problem = error.detail
    except (OSError, ValueError, HTTPException) as error:
        words = certificate_problem(error, ca_file) or getattr(error, "strerror", None) or str(error)
        reach.problem = words or type(error).__name__


def _connect(parts: SplitResult, reach: Reach) -> socket.socket:
    host, port = parts.hostname, parts.port or PORTS.get(parts.scheme, 0)
    if not host or not port:
        raise BadInput(f"{reach.url} is no address: expected SCHEME://HOST:PORT.")
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    reach.addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    reach.step = ReachStep.CONNECTION
    return socket.create_connection((host, port), timeout=PROBE_S)


def _secured(plain: socket.socket, parts: SplitResult, reach: Reach, context: ssl.SSLContext) -> ssl.SSLSocket:
    reach.step, reach.secure = ReachStep.TLS, True
    made = context.wrap_socket(plain, server_hostname=parts.hostname)
    certificate: Any = made.getpeercert() or {}
    reach.names = tuple(value for _, value in certificate.get("subjectAltName", ()))
    reach.expires_at = float(ssl.cert_time_to_seconds(certificate["notAfter"])) if certificate else None
    return made


def _ask(parts: SplitResult, path: str, reach: Reach, ca_file: str, *, only: bool) -> None:
    context = _context(ca_file, only=only) if parts.scheme == "https" else None
    with contextlib.closing(_connect(parts, reach)) as plain:
        used = _secured(plain, parts, reach, context) if context is not None else plain
        with contextlib.closing(used):
            reach.step = ReachStep.ANSWER
            reach.asked_at = time.time()
            used.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
            answer = HTTPResponse(used)
            answer.begin()
            reach.answered_at = time.time()
            reach.status, reach.date = answer.status, answer.getheader("Date", "")
            answer.close()


def _greet(parts: SplitResult, reach: Reach, ca_file: str) -> None:
    with contextlib.closing(_connect(parts, reach)) as plain:
        reach.step = ReachStep.ANSWER
        reach.greeting = _greeting(plain)
        insists = parts.scheme == "tls"
        try:
            if insists:
                check_tls_offer({"tls_required": reach.greeting.tls_required})
        except PlainBus as error:
            reach.step = ReachStep.TLS
            raise OSError(str(error)) from None
        if insists or reach.greeting.tls_required:
            _secured(plain, parts, reach, _context(ca_file, only=True)).close()
        reach.step = ReachStep.ANSWER


def _greeting(plain: socket.socket) -> BusGreeting:
    line = b""
    while not line.endswith(b"\n") and len(line) < LINE:
        part = plain.recv(LINE)
        if not part:
            break
        line += part
    word, _, rest = line.partition(b" ")
    if word != b"INFO":
        raise OSError("what answers there is no nats-server")
    return msgspec.json.decode(rest.strip(), type=BusGreeting)


def _context(ca_file: str, *, only: bool) -> ssl.SSLContext:
    if ca_file and only:
        return trust_authorities(ca_file, "--ca-file")
    context = ssl.create_default_context()
    if ca_file:
        add_authorities(context, ca_file, "--ca-file")
    return context
