"""An upgrade can be taken back: the streams that this release has changed are taken by gateways of the one before."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.bus import connect
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.releases.old_tree import old_python
from tests.releases.stored_release import StoredRelease, each_release

CONFIGS = (
    "import json\n"
    "from pilotlight_core.bus.streams import DEFAULT_LIMITS, stream_configs\n"
    "print(json.dumps(stream_configs(DEFAULT_LIMITS)))"
)


def configs_of(release: StoredRelease, folder: Path) -> list[dict[str, Any]]:
    """What its gateways ask for, each time when they start."""
    release.unpack("source", folder / "tree")
    python = old_python(folder / "tree", folder / "venv")
    told = subprocess.run([python, "-c", CONFIGS], check=True, capture_output=True, cwd=folder, env={})
    found: list[dict[str, Any]] = json.loads(told.stdout)
    return found


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@each_release
async def test_its_gateways_start_on_streams_of_this_release(release: StoredRelease, tmp_path: Path) -> None:
    """There and back: made by it, brought up to date, asked for as before, and brought up to date again.

    Its own way is taken, which knows no exceptions: make, and else change.
    """
    configs = configs_of(release, tmp_path)

    async with embedded_nats(tmp_path / "nats") as server, connect(server.url, name="x", makes_streams=False) as bus:
        for config in configs:
            await bus.jetstream.api(f"STREAM.CREATE.{config['name']}", config)
        for _ in range(2):
            await bus.ensure_streams()
            for config in configs:
                await bus.jetstream.api(f"STREAM.UPDATE.{config['name']}", config)
