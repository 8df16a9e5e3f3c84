"""Functions that look at their way out, and at what else there is."""

from __future__ import annotations

import os
import socket
import ssl
import urllib.request
from pathlib import Path

from pilotlight import App

app = App("network")
NAMED = [f"{name}.example.com:443" for name in ("api", "inside", "rebound", "own", "nobody")]


def answer(url: str, authority: str) -> str:
    """What a web server answers, or why it cannot be asked."""
    try:
        context = ssl.create_default_context(cadata=authority)
        with urllib.request.urlopen(url, context=context, timeout=30) as found:  # noqa: S310 - the test's own
            return str(found.read().decode())
    except OSError as error:
        return str(error)


@app.gpu_function(network=NAMED, scaledown_window=300.0)
def fetch(url: str, authority: str) -> str:
    """Ask as any library does: by the proxy of the environment."""
    return answer(url, authority)


@app.gpu_function(network=NAMED, scaledown_window=300.0)
def connect(address: str, port: int) -> str:
    """Connect without the proxy."""
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError as error:
        return type(error).__name__
    return "connected"


@app.gpu_function(network=NAMED, scaledown_window=300.0)
def say(text: str) -> str:
    """Say something to the socket itself; what comes back."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(30)
        raw.connect("/run/network/proxy.sock")
        raw.sendall(text.encode("latin-1"))
        raw.shutdown(socket.SHUT_WR)
        return raw.recv(4096).decode("latin-1")


@app.gpu_function()
def alone(url: str, authority: str) -> list[str]:
    """Without a network: what is there, and what comes of asking."""
    proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
    return [*proxies, *map(str, Path("/run/network").iterdir()), answer(url, authority)]


@app.gpu_function(network=NAMED, scaledown_window=300.0)
def interfaces() -> list[str]:
    """The network of the sandbox."""
    return [name for _, name in socket.if_nameindex()]
