"""Load by wrk: a POST script, and what wrk printed as numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@dataclass(frozen=True, kw_only=True)
class Load:
    """What one run of wrk measured. Latencies in milliseconds."""

    rps: float
    p50_ms: float
    p99_ms: float
    errors: int


def post(url: str, body: str, headers: Mapping[str, str], *, connections: int, seconds: float) -> Load:
    """POST `body` over and over on that many connections; any answer but 2xx counts as an error."""
    if shutil.which("wrk") is None:
        sys.exit("wrk is missing; install it with: apt-get install wrk")
    lines = ['wrk.method = "POST"', f"wrk.body = [==[{body}]==]"]
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "post.lua"
        script.write_text("\n".join(lines))
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", str(script), url]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60).stdout
    return parse(printed)


def parse(printed: str) -> Load:
    """wrk's report as numbers."""
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", printed)
    socket = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", printed)
    return Load(
        rps=float(re.findall(r"Requests/sec:\s+([\d.]+)", printed)[0]),
        p50_ms=_latency(printed, "50%"),
        p99_ms=_latency(printed, "99%"),
        errors=(int(bad[1]) if bad else 0) + (sum(map(int, socket.groups())) if socket else 0),
    )


def _latency(printed: str, percent: str) -> float:
    found = re.search(rf"{re.escape(percent)}\s+([\d.]+)(us|ms|s|m)\b", printed)
    if found is None:
        raise ValueError(f"wrk printed no {percent} latency:\n{printed}")
    return float(found[1]) * UNITS[found[2]]
