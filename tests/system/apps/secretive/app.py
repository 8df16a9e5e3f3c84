"""Functions that use secrets, and say too much of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pilotlight import App

app = App("secretive")
USES = {"TOKEN": "tests-token", "/run/secrets/key.pem": "tests-key"}


def digest_of(value: str) -> str:
    """What tells whether a value is the right one, without telling it."""
    return hashlib.sha256(value.encode()).hexdigest()


@app.gpu_function(secrets=USES, scaledown_window=60.0, forecast=False)
def digests() -> dict[str, str]:
    """Of the values in the variable and in the file, and of the file's mode."""
    key = Path("/run/secrets/key.pem")
    return {"TOKEN": digest_of(os.environ["TOKEN"]), "key": digest_of(key.read_text()), "mode": oct(key.stat().st_mode)}


@app.gpu_function(secrets=USES, scaledown_window=2.0, forecast=False)
def prints() -> int:
    """Print the values: whole, in two writes, as a child process does, line by line."""
    token, key = os.environ["TOKEN"], Path("/run/secrets/key.pem").read_text()
    print(f"whole: {token} {token!r}")
    sys.stdout.flush()
    os.write(1, f"two writes: {token[:5]}".encode())
    time.sleep(0.2)
    os.write(1, f"{token[5:]} and on\n".encode())
    print(key)
    print(f"far: {'x' * 8_180}{token}{'y' * 100}", file=sys.stderr)
    subprocess.run([sys.executable, "-c", "import os; print('child:', os.environ['TOKEN'])"], check=True)
    return len(token)


@app.gpu_function(secrets=["tests-token"], scaledown_window=2.0, forecast=False)
def raises() -> None:
    """Raise an error with the value in it, at the place where a long text is cut."""
    token = os.environ["TESTS_TOKEN"]
    raise ValueError(f"{'x' * 1_018}{token}{'y' * 9_000} wrong token {token}")


@app.gpu_function(scaledown_window=2.0, forecast=False)
def nothing() -> dict[str, object]:
    """What a function finds that names no secret."""
    return {"env": dict(os.environ), "files": [str(path) for path in Path("/run/secrets").iterdir()]}


@app.gpu_function(secrets={"TOKEN": "tests-token"}, min_containers=2, max_containers=2, timeout=20, forecast=False)
def steady(seconds: float) -> Iterator[str]:
    """Tell the digest for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield digest_of(os.environ["TOKEN"])
        time.sleep(0.05)


@app.gpu_function(secrets={"TOKEN": "tests-token"}, min_containers=1, max_containers=1, timeout=20, forecast=False)
def lonely() -> str:
    """Has one container at a time."""
    return digest_of(os.environ["TOKEN"])
