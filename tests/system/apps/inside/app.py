"""What tenant code can see and reach from inside its sandbox."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pilotlight import App, Client, Function

app = App("inside")
SECRETS = Path("/tmp/secrets")
"""In a container's own /tmp."""


@app.gpu_function(scaledown_window=2.0, forecast=False, env={"OWN": "mine"})
def looks() -> dict[str, Any]:
    """What there is."""
    return {
        "env": dict(os.environ),
        "processes": [path.name for path in Path("/proc").iterdir() if path.name.isdigit()],
        "interfaces": [name for _, name in socket.if_nameindex()],
        "descriptors": [target for path in Path("/proc/self/fd").iterdir() if (target := _target(path))],
    }


@app.gpu_function(scaledown_window=2.0, forecast=False)
def calls_another() -> Any:
    """Call a function of another platform, in a way that no byte code tells."""
    client = Client(url="http://127.0.0.1:1", api_key="k")
    return getattr(Function.from_name("inside", "looks").options(client=client), "rem" + "ote")()


@app.gpu_function(scaledown_window=2.0, forecast=False)
def tries(connects: list[tuple[str, int]], writes: list[str], reads: list[str], kills: list[int]) -> dict[str, str]:
    """How each attempt ends: an errno's name, or "done"."""
    told = {f"connect {host}:{port}": _attempt(_connect, host, port) for host, port in connects}
    told |= {f"write {path}": _attempt(Path(path, "x").write_text, "x") for path in writes}
    told |= {f"read {path}": _attempt(_read, Path(path)) for path in reads}
    return told | {f"kill {pid}": _attempt(os.kill, pid, 9) for pid in kills}


@app.gpu_function(scaledown_window=2.0, forecast=False, max_containers=2)
def keeps(secret: str) -> Iterator[list[str]]:
    """Leave a file, tell which files there are, and stay until the caller leaves."""
    SECRETS.mkdir(exist_ok=True)
    (SECRETS / secret).write_text(secret)
    while True:
        yield sorted(path.name for path in SECRETS.iterdir())
        time.sleep(0.05)


def _attempt(action: Callable[..., object], *args: Any) -> str:
    try:
        action(*args)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))
    return "done"


def _connect(host: str, port: int) -> None:
    socket.create_connection((host, port), 1.0).close()


def _read(path: Path) -> None:
    if path.is_dir():
        list(path.iterdir())
    else:
        path.read_bytes()


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:  # the one with which the folder was listed
        return ""
